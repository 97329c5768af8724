-- Instances: the processes that sent late or future records or deltas with gaps most recently, by a digest of
-- their instance id. The same counts exist by version; these help to find the process.

local MOST_INSTANCES, KEEP_INSTANCES_S = 32, 7 * 86400

-- Count late, future or gap of an instance.
local function note_instance(batch, instance, version, field, by)
  local change = inner(inner(batch, 'instances'), instance)
  change.version = version
  add(change, field, by)
end

local function changed_instance(batch, held, change)
  local told, total = held and cjson.decode(held) or {}, 0
  for _, field in ipairs({ 'late', 'future', 'gap' }) do
    -- A late point may fill a gap that is no longer counted here.
    told[field] = math.max((told[field] or 0) + (change[field] or 0), 0)
    total = total + told[field]
  end
  told.producer, told.version, told.at = batch.producer, change.version, batch.now
  return total > 0 and told or nil
end

local function write_instances(batch)
  if not batch.instances then return end
  local key, kept, names = 'hi:' .. batch.slot, {}, {}
  local held = redis.call('HGETALL', key)
  for at = 1, #held, 2 do kept[held[at]] = held[at + 1] end
  for instance, change in pairs(batch.instances) do
    local told = changed_instance(batch, kept[instance], change)
    kept[instance] = told and cjson.encode(told)
  end
  for instance, packed in pairs(kept) do names[#names + 1] = { instance, cjson.decode(packed).at } end
  table.sort(names, function(a, b)
    if a[2] ~= b[2] then return a[2] > b[2] end
    return a[1] < b[1]
  end)
  redis.call('DEL', key)
  for at = 1, math.min(#names, MOST_INSTANCES) do
    redis.call('HSET', key, names[at][1], kept[names[at][1]])
  end
  redis.call('EXPIRE', key, KEEP_INSTANCES_S)
end
