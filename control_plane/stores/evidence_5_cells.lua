-- Cells that nothing counts in any more. Numbers are never given again, so a row that outlived its cell is of
-- no other.

-- gw_forget_cells: KEYS[1] hash of cells. ARGV: cursor, number of the day that is today, the oldest one on which
-- a cell that stays was used, how many to look at. One without such a day was made before days were noted: from
-- now on it has one. Returns [next cursor, how many were forgotten].
redis.register_function('gw_forget_cells', function(keys, argv)
  local key, today, oldest, forgotten = keys[1], argv[2], tonumber(argv[3]), 0
  local answer = redis.call('HSCAN', key, argv[1], 'COUNT', argv[4])
  for at = 1, #answer[2], 2 do
    local name, id = answer[2][at], answer[2][at + 1]
    local is_name = name:sub(1, 1) == '['
    local used = is_name and redis.call('HGET', key, '#' .. name)
    if used then
      local day, budget = used:match('^(%d+) (.*)$')
      if tonumber(day) < oldest then
        redis.call('HDEL', key, name, '#' .. name, '#' .. id)
        if budget ~= '' and redis.call('HINCRBY', key, budget, -1) < 1 then redis.call('HDEL', key, budget) end
        forgotten = forgotten + 1
      end
    elseif is_name then
      redis.call('HSET', key, '#' .. name, today .. ' ')
    end
  end
  return { tonumber(answer[1]), forgotten }
end)
