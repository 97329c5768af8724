-- Cells that nothing counts in any more. Numbers are never given again, so a row that outlived its cell is of
-- no other.

-- gw_forget_cells: KEYS[1] hash of cells. ARGV: cursor, number of the oldest day on which a cell that stays was
-- used, how many to look at. Returns [next cursor, how many were forgotten].
redis.register_function('gw_forget_cells', function(keys, argv)
  local key, oldest, forgotten = keys[1], tonumber(argv[2]), 0
  local answer = redis.call('HSCAN', key, argv[1], 'COUNT', argv[3])
  for at = 1, #answer[2], 2 do
    local name, id = answer[2][at], answer[2][at + 1]
    local used = name:sub(1, 1) == '[' and redis.call('HGET', key, '#' .. name)
    if used then
      local day, budget = used:match('^(%d+) (.*)$')
      if tonumber(day) < oldest then
        redis.call('HDEL', key, name, '#' .. name, '#' .. id)
        if budget ~= '' and redis.call('HINCRBY', key, budget, -1) < 1 then redis.call('HDEL', key, budget) end
        forgotten = forgotten + 1
      end
    end
  end
  return { tonumber(answer[1]), forgotten }
end)
