-- Which days a metric point is of: what its hosts' counters show of each, and what they count across midnights
-- (smeared) or without attributes (overflowed). How a point's event lies is in evidence_3_streams.lua.

-- By place 5 of a point's guards: what it shows of a host that numbers nothing (keys.py tells of the sums).
local SHOWS = { 'counted', 'witnessed' }

-- Starts that counters of trusted producers show, by guard and version: a host counts a prompt for each guard.
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

-- What began on an earlier day, `from`, may be of any day since: all of them are smeared. Of what an SDK
-- counted beyond its limit of attribute sets, it is known how much, and no more.
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

-- From when on what follows a point counts: of a point at midnight that is behind its day.
local function day_behind(point)
  return point.t % DAY_US == 0 and point.d .. '~' or point.d
end
