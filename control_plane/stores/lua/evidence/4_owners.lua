-- Owner activity: the versions, producers and days of an owner's accepted records.

local sighted = {}

-- The stored activity of the owners of these sightings, by pseudonym.
function sighted.known_of(slot, sightings)
  local owners, names = {}, {}
  for _, sighting in ipairs(sightings) do
    if not owners[sighting[1]] then
      owners[sighting[1]] = { v = {}, p = {}, d = {} }
      names[#names + 1] = sighting[1]
    end
  end
  for from = 1, #names, AT_ONCE do
    local to = math.min(from + AT_ONCE - 1, #names)
    for nth, held in ipairs(redis.call('HMGET', 'ow:' .. slot, unpack(names, from, to))) do
      if held then owners[names[from + nth - 1]] = cmsgpack.unpack(held) end
    end
  end
  return owners
end

-- A sighting is [pseudonym, version, producer, day, oldest day worth keeping, 1 when of a prompt].
function sighted.learn(slot, sightings)
  local owners = sighted.known_of(slot, sightings)
  for _, sighting in ipairs(sightings) do
    local pseudonym, version, producer, day, oldest, is_prompt = unpack(sighting)
    local owner = owners[pseudonym]
    local news = { v = version, p = producer, d = is_prompt == 1 and day or nil }
    for part, name in pairs(news) do
      if (owner[part][name] or '') < day then owner[part][name] = day; owner.changed = oldest end
    end
  end
  return owners
end

-- The newest names of a map from name to day, at most MOST_NAMES, and how many were left out.
function sighted.newest(days)
  local names, kept = {}, {}
  for name in pairs(days) do names[#names + 1] = name end
  if #names <= MOST_NAMES then return days, 0 end
  table.sort(names, function(a, b)
    if days[a] ~= days[b] then return days[a] > days[b] end
    return a < b
  end)
  for at = 1, MOST_NAMES do kept[names[at]] = days[names[at]] end
  return kept, #names - MOST_NAMES
end

local BEYOND = { v = 'overflow:versions', p = 'overflow:producers', d = 'overflow:prompt_days' }

function sighted.kept_of(batch, owner)
  local kept = {}
  for part, field in pairs(BEYOND) do
    local recent, left_out = {}, 0
    for name, day in pairs(owner[part]) do
      if day >= owner.changed then recent[name] = day end
    end
    kept[part], left_out = sighted.newest(recent)
    if left_out > 0 then add(batch.health, field, left_out) end
  end
  return kept
end

function sighted.write(batch, owners)
  local slot, told, changed = batch.slot, {}, {}
  for pseudonym, owner in pairs(owners) do
    if owner.changed then
      told[#told + 1] = pseudonym
      told[#told + 1] = cmsgpack.pack(sighted.kept_of(batch, owner))
      changed[#changed + 1] = pseudonym
    end
  end
  if #changed == 0 then return end
  local last, ranks = redis.call('INCRBY', 'on:' .. slot, #changed), {}
  for at, pseudonym in ipairs(changed) do
    ranks[#ranks + 1] = last - #changed + at
    ranks[#ranks + 1] = pseudonym
  end
  call_with('HSET', 'ow:' .. slot, told)
  call_with('ZADD', 'oc:' .. slot, ranks)
end
