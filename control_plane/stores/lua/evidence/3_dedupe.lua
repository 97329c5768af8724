-- Days of metric points, and deduplication. The first half counts, for each day, what points report, also
-- across midnights (smeared) and without attributes (overflowed); 3_streams.lua describes the events of points.

-- By place 5 of a point's guards: the sum that it raises for a host that numbers nothing (keys.py: EvidenceKeys.day).
local SHOWS = { 'counted', 'witnessed' }

-- Starts in counters of trusted producers, by guard and version: a host counts a prompt for each guard.
local function show_starts(batch, event, day, field, by)
  if event[9][9] ~= 1 or not batch.is_trusted then return end
  local name = cell_name(batch, cell_id(batch, event[9][1]))
  local guard = cjson.decode(name)[1]
  add(inner(batch.days, day), field .. ':' .. guard .. '|' .. version_of(batch, name), by)
end

-- A stream is forgotten after 7 days: it may have begun on the day before them.
local MOST_SMEARED, DAY_US = 9, 86400 * 1e6

-- The day before one in ISO 8601 (proleptic Gregorian calendar, from 1970 on).
local MONTHS = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 }
local function day_before(day)
  local year, month, at = day:match('^(%d+)-(%d+)-(%d+)$')
  year, month, at = tonumber(year), tonumber(month), at - 1
  if at == 0 then
    month = month - 1
    if month == 0 then year, month = year - 1, 12 end
    at = MONTHS[month]
    local is_leap = year % 4 == 0 and (year % 100 ~= 0 or year % 400 == 0)
    if month == 2 and is_leap then at = 29 end
  end
  return string.format('%04d-%02d-%02d', year, month, at)
end

-- A count that began on an earlier day, `from`, may belong to any day since: all of them are smeared. Beyond its
-- limit of attribute sets an SDK reports only the amount.
local function tell_days(batch, event, point, from, sign)
  if point.v == 0 then return end
  local function tell(day, field, is_evidence)
    local sums = inner(batch.days, day)
    add(sums, field, sign)
    if is_evidence then add(sums, 'c' .. field, sign) end
  end
  if event[9][7] > 0 then tell(point.d, 'overflowed', event[9][7] == 2) end
  if from == '' or from >= point.d then return end
  local days, day = {}, point.d
  while day >= from and #days < MOST_SMEARED do
    days[#days + 1] = day
    day = day_before(day)
  end
  if #days == 1 then return end
  local is_evidence = event[9][3] and (#event[9][4] > 0 or next(point.b))
  for _, smeared in ipairs(days) do tell(smeared, 'smeared', is_evidence) end
  local shows = event[9][3] and SHOWS[event[9][5]]
  if shows then add(inner(batch.days, point.d), shows .. '_since', sign * point.v) end
  show_starts(batch, event, point.d, 'shown_since', sign * point.v)
end

-- The day from which counts after a point may come: for a point at midnight, the end of its day.
local function day_behind(point)
  return point.t % DAY_US == 0 and point.d .. '~' or point.d
end

-- Deduplication. A prompt's own value holds eight bytes (a token) of each of its first events; later ones are in a
-- set of the prompt. All other identities are in one set for each minute. Either set grows while it is small
-- enough to stay compact; further identities go to one of a hundred further sets, by the end of their digest.

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

-- The digests that are in the sets of a minute, and how many more its first set takes.
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

-- Whether a prompt's event is new; if so, it is known from now on.
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
