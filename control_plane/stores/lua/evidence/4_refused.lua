-- Rejected items: each is counted once, however often it comes. Most have no reliable time, so their identities are
-- kept by the day on which they came, in a hundred sets that stay compact; yesterday's are known today. A rejected
-- item whose set is full counts each time.

local MOST_REFUSED_IN_A_SET, KEEP_REFUSED_S = 4096, 2 * 86400

local refusals = {}

function refusals.set_of(batch, days_ago, digest)
  local day = math.floor(batch.now / 86400) - days_ago
  return string.format('rf:%s:%d:%s', batch.slot, day, digest:sub(-2))
end

-- For each of today's sets: the known digests of all groups, and how many more it takes.
function refusals.look_up(batch, groups)
  local digests_of, sets = {}, {}
  for _, group in ipairs(groups) do
    for _, digest in ipairs(group[4]) do
      local digests = inner(digests_of, refusals.set_of(batch, 0, digest))
      digests[#digests + 1] = digest
    end
  end
  for key, digests in pairs(digests_of) do
    local marks = {}
    mark_members(key, digests, marks)
    mark_members(refusals.set_of(batch, 1, digests[1]), digests, marks)
    sets[key] = { marks = marks, room = MOST_REFUSED_IN_A_SET - redis.call('SCARD', key) }
  end
  return sets
end

-- Whether the item of this digest is new; from now on it is known.
function refusals.is_fresh(batch, sets, digest)
  local key = refusals.set_of(batch, 0, digest)
  local set = sets[key]
  if set.marks[digest] then return false end
  if set.room > 0 then
    set.marks[digest], set.room = true, set.room - 1
    local seen = inner(inner(batch, 'refused'), key)
    seen[#seen + 1] = digest
  else
    add(batch.health, 'overflow:refused', 1)
  end
  return true
end

-- A group is [version, counter, day on which its items count as records or '', digests, the sending instance if
-- its clock may be wrong or ''].
function refusals.count(batch, groups)
  local sets = refusals.look_up(batch, groups)
  for _, group in ipairs(groups) do
    local version, counter, day, digests, instance = unpack(group)
    local fresh = 0
    for _, digest in ipairs(digests) do
      if refusals.is_fresh(batch, sets, digest) then fresh = fresh + 1 end
    end
    local source, repeated = inner(batch.sources, version), #digests - fresh
    if fresh > 0 then
      add(batch.health, counter:match('^[^:]+'), fresh)
      add(batch.health, counter, fresh)
      add(source, counter, fresh)
      if instance ~= '' then
        note_instance(batch, instance, version, counter:match('[^:]+$'), fresh)
      end
    end
    if repeated > 0 then
      add(batch.health, 'duplicate', repeated)
      add(source, 'duplicate', repeated)
    end
    -- An item without environment or version does not conform, by either source.
    if day ~= '' then
      local sums = inner(batch.days, day)
      add(sums, 'records', fresh)
      add(sums, 'crecords', fresh)
    end
  end
end

function refusals.write(batch)
  for key, digests in pairs(batch.refused or {}) do
    for from = 1, #digests, AT_ONCE do
      redis.call('SADD', key, unpack(digests, from, math.min(from + AT_ONCE - 1, #digests)))
    end
    redis.call('EXPIRE', key, KEEP_REFUSED_S)
  end
end
