-- Metric streams: what delta and cumulative points add. A cumulative stream adds on a day the difference of two
-- known points, so late, repeated and re-ordered points end in the same sums (OpenTelemetry metrics data model:
-- resets and gaps, overlap, unknown start time).
--
-- A point's event has in place of the guards [cell name, counter, cell name of the owner's evidence or false, places
-- in its row, 1 when it counts transitions of a host that does not number them and 2 when it is another counter of
-- such a host, day of its start or '', 1 when its SDK left its attributes out and 2 when an owner's evidence lacks
-- them, its instance, 1 when it counts starts of prompts] and in place of the numbers [1 when cumulative, start,
-- time (microseconds), value, hour, conforming, coarser, bucket, count, ...].

-- Bring buckets to a scale that is lower by `by`: each step joins two neighbours.
local function coarsened(buckets, by)
  if by == 0 then return buckets end
  local wider = {}
  for bucket, count in pairs(buckets) do add(wider, math.floor(bucket / 2 ^ by), count) end
  return wider
end

local function add_buckets(change, buckets, coarser, sign)
  local scale = math.max(change.coarser, coarser)
  change.buckets = coarsened(change.buckets, scale - change.coarser)
  for bucket, count in pairs(coarsened(buckets, scale - coarser)) do
    add(change.buckets, bucket, sign * count)
  end
  change.coarser = scale
end

local function point_of(event)
  local numbers, buckets = event[11], {}
  for at = 8, #numbers, 2 do buckets[numbers[at]] = numbers[at + 1] end
  return { d = event[7], t = numbers[3], v = numbers[4], k = numbers[7], b = buckets }
end

local function add_to_owner(batch, event, point, sign)
  local cell, places = event[9][3], event[9][4]
  if not cell then return end
  local change = change_of(batch, cell_id(batch, cell), point.d, { p = event[5], b = event[6] })
  local sums, by = inner(batch.days, point.d), sign * point.v
  local shows = SHOWS[event[9][5]]
  if shows then add(sums, shows, by) end
  for _, place in ipairs(places) do
    add(change.sums, place, by)
    if place == STARTED then add(sums, 'ch' .. event[11][5], by) end
    if place == ENDED then add(sums, 'cended', by) end
  end
  add_buckets(change, point.b, point.k, sign)
end

local function add_point(batch, event, point, sign)
  local cell = cell_id(batch, event[9][1])
  local counter = inner(batch.counters, string.format('ct:%s:%d:%s', batch.slot, cell, point.d))
  counter.day = point.d
  add(inner(counter, 'sums'), event[9][2], sign * point.v)
  add_to_owner(batch, event, point, sign)
  show_starts(batch, event, point.d, 'shown', sign * point.v)
end

-- The difference of two points of one start; `before` is nil where the count begins.
local function between(point, before)
  if not before then return point end
  local change = { buckets = point.b, coarser = point.k }
  add_buckets(change, before.b, before.k, -1)
  return { d = point.d, v = point.v - before.v, k = change.coarser, b = change.buckets }
end

local function add_segment(batch, event, segment, sign)
  local before, from = segment.b, segment.d or event[9][6]
  for _, point in ipairs(segment.p) do
    local added = between(point, before)
    add_point(batch, event, added, sign)
    tell_days(batch, event, added, before and day_behind(before) or from, sign)
    before = point
  end
end

-- The run of a point's start. The counts of a forgotten run are not known: up to its time, f, nothing of it counts
-- again, and no start up to the newest forgotten one, h, counts as new.
local function run_of(batch, event, stream, start, time)
  for _, run in ipairs(stream.r) do
    if run.s == start then return time > (run.o or -1) and run or nil end
  end
  local was_forgotten = start <= (stream.h or stream.f or -1)
  if time <= (stream.f or -1) or was_forgotten and #stream.r >= MOST_STARTS then return nil end
  local run = { s = start, g = { { f = start, p = {} } } }
  if was_forgotten then
    run.u, run.o = 1, stream.f
    note(batch, event[9][1], 'streams:forgotten', 1)
  elseif start < batch.now * 1e6 - KEEP_STREAM_S * 1e6 then
    -- Unset, or so old that its counts may be forgotten: only what follows counts.
    run.u = 1
    note(batch, event[9][1], 'streams:unknown_start', 1)
  elseif #stream.r > 0 then
    note(batch, event[9][1], 'streams:reset', 1)
  end
  table.insert(stream.r, run)
  return run
end

-- The segment of a run that holds a point: a value that falls without a new start begins another segment.
local function segment_of(run, time)
  for at = #run.g, 2, -1 do
    if run.g[at].f < time then return run.g[at] end
  end
  return run.g[1]
end

local function may_fall(stream)
  local falls = 0
  for _, run in ipairs(stream.r) do falls = falls + #run.g - 1 end
  return falls < MOST_FALLS
end

-- Put a point at its place in a segment, which keeps the last point of each day; returns a fault or nil.
local function put_point(stream, run, segment, point)
  local points, at, is_newest = segment.p, 1, segment == run.g[#run.g]
  while points[at] and points[at].t <= point.t do at = at + 1 end
  local before, after = points[at - 1] or segment.b, points[at]
  if after and after.v < point.v then return 'streams:conflict' end
  if before and before.t == point.t and before.v ~= point.v then
    if point.v > before.v then before.v, before.k, before.b = point.v, point.k, point.b end
    return 'streams:conflict'
  end
  if before and point.v < before.v and before.t < point.t then
    if after or not is_newest then return 'streams:conflict' end
    -- Beyond the bound the point is dropped, so that only what exceeds the highest value counts.
    if may_fall(stream) then table.insert(run.g, { f = before.t, d = day_behind(before), p = { point } }) end
    return 'streams:fall'
  end
  if after and after.d == point.d then return nil end
  if points[at - 1] and before.d == point.d then
    points[at - 1] = point
    return nil
  end
  table.insert(points, at, point)
  return nil
end

-- Points before which no acceptable point can come any more are replaced by one base.
local function forget_points(run)
  local oldest = run.l - KEEP_SEEN_S * 1e6
  while run.g[2] and run.g[2].f <= oldest do
    table.remove(run.g, 1)
    run.u = nil
  end
  for _, segment in ipairs(run.g) do
    while segment.p[2] and segment.p[2].t <= oldest do segment.b = table.remove(segment.p, 1) end
  end
end

-- A run is kept as long as its points could still be accepted.
local function forget_runs(stream)
  local kept = {}
  table.sort(stream.r, function(a, b)
    if a.l ~= b.l then return a.l > b.l end
    return a.s > b.s
  end)
  local newest = stream.r[1].l
  for at, run in ipairs(stream.r) do
    if at <= MOST_STARTS and run.l > newest - KEEP_SEEN_S * 1e6 then
      kept[#kept + 1] = run
    else
      stream.h = math.max(stream.h or stream.f or 0, run.s)
      stream.f = math.max(stream.f or 0, run.l)
    end
  end
  stream.r = kept
end

-- Returns whether the amount that the point adds is known.
local function take_cumulative(batch, event, stream)
  local point = point_of(event)
  local start = event[11][2]
  local run = run_of(batch, event, stream, start, point.t)
  if not run then
    note(batch, event[9][1], 'streams:forgotten', 1)
    return false
  end
  run.l = math.max(run.l or 0, point.t)
  local segment = segment_of(run, point.t)
  add_segment(batch, event, segment, -1)
  local segments, fault = #run.g, nil
  local first = run.g[1].b
  if point.t == start or run.u and (not first or point.t < first.t) then
    run.g[1].b = point
    if run.u and first then fault = put_point(stream, run, segment, first) end
  else
    fault = put_point(stream, run, segment, point)
  end
  add_segment(batch, event, segment, 1)
  if #run.g > segments then add_segment(batch, event, run.g[#run.g], 1) end
  if fault then note(batch, event[9][1], fault, 1) end
  forget_points(run)
  forget_runs(stream)
  return true
end

-- A stream of deltas is gapless when its intervals touch each other; they never overlap. A point adds its value
-- even when its stream has no state.
local function take_delta(batch, event, stream)
  local point = point_of(event)
  add_point(batch, event, point, 1)
  tell_days(batch, event, point, event[9][6], 1)
  local from, to = event[11][2], event[11][3]
  if not stream or from == 0 or from >= to then return end
  local spans, kept, overlaps = stream.q, {}, false
  for at = 1, #spans, 2 do
    local first, last = spans[at], spans[at + 1]
    if last < from or first > to then
      kept[#kept + 1] = { first, last }
    else
      overlaps = overlaps or last > from and first < to
      from, to = math.min(from, first), math.max(to, last)
    end
  end
  kept[#kept + 1] = { from, to }
  table.sort(kept, function(a, b) return a[1] < b[1] end)
  local gaps = #kept - math.max(#spans / 2, 1)
  if #kept > MOST_GAPS then kept[2][1] = kept[1][1]; table.remove(kept, 1) end
  stream.q = {}
  for _, span in ipairs(kept) do
    stream.q[#stream.q + 1] = span[1]
    stream.q[#stream.q + 1] = span[2]
  end
  if gaps ~= 0 then
    note(batch, event[9][1], 'streams:gap', gaps)
    note_instance(batch, event[9][8], version_of(batch, event[9][1]), 'gap', gaps)
  end
  if overlaps then note(batch, event[9][1], 'streams:conflict', 1) end
end

-- The state of a stream; nil for a new one beyond its producer's bound.
local function stream_of(batch, suffix)
  local stream = batch.streams[suffix]
  if stream then return stream end
  local held = redis.call('GET', 'cs:' .. batch.slot .. ':' .. suffix)
  if not held then
    if not batch.room then
      local told = 'sn:' .. batch.slot .. ':' .. batch.producer
      batch.room = math.huge
      for within, most in pairs(MOST_STREAMS) do
        batch.room = math.min(batch.room, most - redis.call('ZCOUNT', told, batch.now - within, '+inf'))
      end
    end
    if batch.room < 1 then return nil end
    batch.room = batch.room - 1
  end
  stream = held and cmsgpack.unpack(held) or { r = {}, q = {} }
  batch.streams[suffix] = stream
  return stream
end

local function write_streams(batch)
  if not next(batch.streams) then return end
  local told = 'sn:' .. batch.slot .. ':' .. batch.producer
  for suffix, stream in pairs(batch.streams) do
    local key = 'cs:' .. batch.slot .. ':' .. suffix
    redis.call('SET', key, cmsgpack.pack(stream), 'EX', KEEP_STREAM_S)
    redis.call('ZADD', told, batch.now, suffix)
  end
  redis.call('ZREMRANGEBYSCORE', told, '-inf', '(' .. batch.now - KEEP_STREAM_S)
  redis.call('EXPIRE', told, KEEP_STREAM_S)
end

local function take_point(batch, event)
  local stream, is_known = stream_of(batch, event[4]), true
  if not stream then note(batch, event[9][1], 'streams:over_limit', 1) end
  if event[11][1] == 1 then
    is_known = stream and take_cumulative(batch, event, stream)
    if not is_known then add(batch, stream and 'forgotten' or 'over_limit', 1) end
  else
    take_delta(batch, event, stream)
  end
  if event[11][6] >= 0 and event[9][3] then
    local sums = inner(batch.days, event[7])
    add(sums, 'crecords', 1)
    -- A point whose amount is unknown does not conform: too many of them make the day incomplete.
    add(sums, 'cconforming', is_known and event[11][6] or 0)
  end
end
