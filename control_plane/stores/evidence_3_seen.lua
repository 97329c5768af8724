-- Which events are new. A prompt knows those of its events itself: eight bytes of each (its token) up to so many,
-- and what comes then is in a set of its own. All else is known by minute: the identities of a minute are in one
-- set. Either set grows while it is small enough to stay compact; what comes when it is full goes to one of a
-- hundred further sets, by the end of its digest.

local MOST_IN_A_SET, AT_ONCE = 4096, 4000

-- Call a command with many values, an even number of them at once.
local function call_with(command, key, values)
  for from = 1, #values, AT_ONCE do
    redis.call(command, key, unpack(values, from, math.min(from + AT_ONCE - 1, #values)))
  end
end

local function mark_members(key, digests, marks)
  for from = 1, #digests, AT_ONCE do
    local to = math.min(from + AT_ONCE - 1, #digests)
    local answer = redis.call('SMISMEMBER', key, unpack(digests, from, to))
    for at, flag in ipairs(answer) do
      if flag == 1 then marks[digests[from + at - 1]] = true end
    end
  end
end

local function further_set(key, digest)
  return key .. ':' .. digest:sub(-2)
end

-- Which of the digests are in the sets of a minute, and how many more its first set takes.
local function look_up(key, digests)
  local marks, further = {}, {}
  mark_members(key, digests, marks)
  local room = MOST_IN_A_SET - redis.call('SCARD', key)
  if room > 0 then return { marks = marks, room = room } end
  for _, digest in ipairs(digests) do
    if not marks[digest] then
      local others = inner(further, further_set(key, digest))
      others[#others + 1] = digest
    end
  end
  for other, part in pairs(further) do mark_members(other, part, marks) end
  return { marks = marks, room = 0 }
end

local function fresh_events(batch, events)
  local digests_of, minutes, fresh, repeated = {}, {}, {}, {}
  for _, event in ipairs(events) do
    local digests = inner(digests_of, event[3])
    digests[#digests + 1] = event[2]
  end
  for _, event in ipairs(events) do
    local key, digest = 'dd:' .. batch.slot .. ':' .. event[3], event[2]
    local minute = minutes[key] or look_up(key, digests_of[event[3]])
    minutes[key] = minute
    if minute.marks[digest] then
      repeated[#repeated + 1] = event
    else
      minute.marks[digest] = true
      fresh[#fresh + 1] = event
      local seen = inner(batch.seen, minute.room > 0 and key or further_set(key, digest))
      seen[#seen + 1] = digest
      minute.room = minute.room - 1
    end
  end
  return fresh, repeated
end

local TOKEN, MOST_KNOWN = 8, 512 * 8

local function holds(known, token)
  local at = known:find(token, 1, true)
  while at and at % TOKEN ~= 1 do at = known:find(token, at + 1, true) end
  return at ~= nil
end

-- The lower 63 bits of a token as decimals, which a set keeps in eight bytes. A double has 53 bits.
local function decimal(token)
  local high, low = struct.unpack('>I4I4', token)
  high = high % 2 ^ 31
  low = high * 967296 + low
  return string.format('%.0f%06.0f', high * 4294 + math.floor(low / 1e6), low % 1e6)
end

-- Whether a prompt's event is new; then the prompt knows it.
local function is_new(batch, prompt, suffix, token)
  local known = prompt.d or ''
  if known ~= '' and holds(known, token) then return false end
  if #known < MOST_KNOWN then
    prompt.d = known .. token
    return true
  end
  local key, digest = 'pd:' .. batch.slot .. ':' .. suffix, decimal(token)
  local marks = inner(batch.marks, key)
  if marks[digest] or redis.call('SISMEMBER', key, digest) == 1 then return false end
  marks.room = marks.room or MOST_IN_A_SET - redis.call('SCARD', key)
  if marks.room <= 0 then
    key = further_set(key, digest)
    if redis.call('SISMEMBER', key, digest) == 1 then return false end
  end
  marks[digest], marks.room = true, marks.room - 1
  local seen = inner(batch.seen, key)
  seen[#seen + 1] = digest
  return true
end

local function write_seen(batch)
  for key, digests in pairs(batch.seen) do
    call_with('SADD', key, digests)
    redis.call('EXPIRE', key, KEEP_SEEN_S)
  end
end
