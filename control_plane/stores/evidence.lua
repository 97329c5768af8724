#!lua name=guardwave_evidence
-- Evidence, exactly once. Each function reads and computes first and writes last, so that an error
-- of its own leaves nothing half-written. Keys not in KEYS share the slot of KEYS[1].

local KEEP_SEEN_S = 72 * 3600
local KEEP_OPEN_S = 49 * 3600
local KEEP_ENDED_S = 24 * 3600
local KEEP_EVIDENCE_S = 120 * 86400
local LOST_AFTER_S = 24 * 3600
local KEEP_PROMPT_DAYS = 16

-- Places in an owner-day row; the histogram's [bucket, count, ...] pairs follow from HISTOGRAM on.
local STARTED, CANCELLED, COMPLETED, FAILED, GUARD_STOPPED, LIMIT, LOST = 1, 2, 3, 4, 5, 6, 7
local DISRUPTED, TOKENS, TURNS, WOULD_STOPPED, STOPPED, CALLS_AFTER = 8, 9, 10, 11, 12, 13
local UNRELIABLE, COVERED, ENDED, HISTOGRAM = 14, 15, 16, 17

-- What one call has read and will write: loaded once, changed in memory, written at the end.
local function new_batch(slot)
  return { slot = slot, rows = {}, states = {}, seen = {}, cells = {}, days = {}, touched = {} }
end

local function cell_id(batch, name)
  local id = batch.cells[name]
  if id then return id end
  local key = 'cells:' .. batch.slot
  id = redis.call('HGET', key, name)
  if not id then
    id = redis.call('HINCRBY', key, '#', 1)
    redis.call('HSET', key, name, id)
  end
  batch.cells[name] = tonumber(id)
  return batch.cells[name]
end

local function row(batch, cell, day, bucket, pseudonym)
  local key = string.format('od:%s:%d:%s:%02x', batch.slot, cell, day, bucket)
  local rows = batch.rows[key]
  if not rows then rows = {}; batch.rows[key] = rows end
  local found = rows[pseudonym]
  if not found then
    local held = redis.call('HGET', key, pseudonym)
    if held then
      found = cmsgpack.unpack(held)
    else
      found = {}
      for at = 1, HISTOGRAM - 1 do found[at] = 0 end
    end
    rows[pseudonym] = found
  end
  batch.touched[day] = true
  return found
end

local function day_add(batch, day, field, by)
  local sums = batch.days[day]
  if not sums then sums = {}; batch.days[day] = sums end
  sums[field] = (sums[field] or 0) + by
  batch.touched[day] = true
end

local function state(batch, event)
  local found = batch.states[event[4]]
  if found then return found end
  local held = redis.call('GET', 'ps:' .. batch.slot .. ':' .. event[4])
  if held then
    found = cmsgpack.unpack(held)
  else
    found = { n = 0, m = 0, g = {}, p = event[5], b = event[6] }
  end
  batch.states[event[4]] = found
  return found
end

-- A prompt keeps the cell of the first record that named it: intention to treat.
local function place(batch, prompt, event)
  for _, pair in ipairs(event[9]) do
    local cell = cell_id(batch, pair[2])
    local guard = prompt.g[pair[1]]
    if not guard then
      prompt.g[pair[1]] = { c = cell, w = 0, p = 0, u = 0, x = 0 }
    elseif guard.c ~= cell then
      if not guard.sw then day_add(batch, prompt.d or event[7], 'switched', 1) end
      guard.sw = true
    end
  end
end

local function guard_row(batch, prompt, guard)
  return row(batch, guard.c, prompt.d, prompt.b, prompt.p)
end

-- Book what waited for the prompt's day, and the start, once per guard.
local function book(batch, prompt)
  if not prompt.d then return end
  for _, guard in pairs(prompt.g) do
    local sums = guard_row(batch, prompt, guard)
    if not guard.st then
      sums[STARTED] = sums[STARTED] + 1
      guard.st = true
    end
    sums[WOULD_STOPPED] = sums[WOULD_STOPPED] + guard.w
    sums[STOPPED] = sums[STOPPED] + guard.p
    if guard.u == 1 then sums[UNRELIABLE] = sums[UNRELIABLE] + 1; guard.u = 2 end
    if guard.x == 1 then sums[DISRUPTED] = sums[DISRUPTED] + 1; guard.x = 2 end
    guard.w = 0
    guard.p = 0
  end
end

local function add_duration(sums, bucket)
  for at = HISTOGRAM, #sums, 2 do
    if sums[at] == bucket then
      sums[at + 1] = sums[at + 1] + 1
      return
    end
  end
  sums[#sums + 1] = bucket
  sums[#sums + 1] = 1
end

local function started(batch, prompt, event)
  prompt.s = true
  if not prompt.d then
    prompt.d = event[7]
    day_add(batch, prompt.d, 'h' .. event[11][1], 1)
  end
  if not prompt.e then prompt.due = event[8] + LOST_AFTER_S end
end

local function ended(batch, prompt, event)
  local outcome, tokens, turns, bucket, transitions, calls_after, hour = unpack(event[11])
  if not prompt.d then
    prompt.d = event[7]
    day_add(batch, prompt.d, 'h' .. hour, 1)
  end
  book(batch, prompt)
  prompt.e = true
  prompt.due = nil
  prompt.t = transitions
  for _, guard in pairs(prompt.g) do
    local sums = guard_row(batch, prompt, guard)
    if prompt.l then sums[LOST] = sums[LOST] - 1 end
    sums[outcome] = sums[outcome] + 1
    sums[ENDED] = sums[ENDED] + 1
    sums[TOKENS] = sums[TOKENS] + tokens
    sums[TURNS] = sums[TURNS] + turns
    sums[CALLS_AFTER] = sums[CALLS_AFTER] + calls_after
    if bucket then add_duration(sums, bucket) end
  end
  prompt.l = nil
  day_add(batch, prompt.d, 'ended', 1)
end

local function transitioned(prompt, event)
  local sequence, would_stop, stop, unreliable = unpack(event[11])
  prompt.n = prompt.n + 1
  if sequence > prompt.m then prompt.m = sequence end
  local guard = prompt.g[event[9][1][1]]
  guard.w = guard.w + would_stop
  guard.p = guard.p + stop
  if unreliable == 1 and guard.u == 0 then guard.u = 1 end
end

-- Covered: a start, an end, and a gapless sequence from 1 as long as the end reports. Sequences
-- are distinct (their identity was new), so count = highest = reported says gapless.
local function cover(batch, prompt)
  if prompt.c or not (prompt.s and prompt.e) then return end
  if prompt.n ~= prompt.t or prompt.m ~= prompt.t then return end
  prompt.c = true
  for _, guard in pairs(prompt.g) do
    local sums = guard_row(batch, prompt, guard)
    sums[COVERED] = sums[COVERED] + 1
  end
  day_add(batch, prompt.d, 'covered', 1)
end

local function apply_prompt_event(batch, event)
  local prompt = state(batch, event)
  place(batch, prompt, event)
  local kind = event[1]
  if kind == 's' then
    started(batch, prompt, event)
  elseif kind == 'e' then
    ended(batch, prompt, event)
  elseif kind == 't' then
    transitioned(prompt, event)
  else
    for _, pair in ipairs(event[9]) do
      if prompt.g[pair[1]].x == 0 then prompt.g[pair[1]].x = 1 end
    end
  end
  book(batch, prompt)
  cover(batch, prompt)
end

local function fresh_events(batch, events)
  local by_bucket = {}
  for _, event in ipairs(events) do
    local list = by_bucket[event[3]]
    if not list then list = {}; by_bucket[event[3]] = list end
    list[#list + 1] = event[2]
  end
  local known = {}
  for bucket, digests in pairs(by_bucket) do
    local key = 'dd:' .. batch.slot .. ':' .. bucket
    local flags = {}
    for from = 1, #digests, 4000 do
      local answer = redis.call('SMISMEMBER', key,
        unpack(digests, from, math.min(from + 3999, #digests)))
      for _, flag in ipairs(answer) do flags[#flags + 1] = flag end
    end
    local marks = {}
    for at, digest in ipairs(digests) do marks[digest] = flags[at] == 1 end
    known[bucket] = marks
  end
  local fresh = {}
  for _, event in ipairs(events) do
    local marks = known[event[3]]
    if not marks[event[2]] then
      marks[event[2]] = true
      fresh[#fresh + 1] = event
      local add = batch.seen[event[3]]
      if not add then add = {}; batch.seen[event[3]] = add end
      add[#add + 1] = event[2]
    end
  end
  return fresh
end

local function write_prompts(batch)
  for suffix, prompt in pairs(batch.states) do
    local due = 'due:' .. batch.slot
    if prompt.due then
      redis.call('ZADD', due, prompt.due, suffix)
    else
      redis.call('ZREM', due, suffix)
    end
    local keep = prompt.e and KEEP_ENDED_S or KEEP_OPEN_S
    redis.call('SET', 'ps:' .. batch.slot .. ':' .. suffix, cmsgpack.pack(prompt), 'EX', keep)
  end
end

local function write_days(batch)
  for day, sums in pairs(batch.days) do
    local key = 'dy:' .. batch.slot .. ':' .. day
    for field, by in pairs(sums) do redis.call('HINCRBY', key, field, by) end
  end
  for day in pairs(batch.touched) do
    local key = 'dy:' .. batch.slot .. ':' .. day
    if redis.call('HEXISTS', key, 'sealed_at') == 1 then redis.call('HINCRBY', key, 'revision', 1) end
    redis.call('EXPIRE', key, KEEP_EVIDENCE_S)
    redis.call('SADD', 'dys:' .. batch.slot, day)
  end
end

local function write_batch(batch)
  for bucket, digests in pairs(batch.seen) do
    local key = 'dd:' .. batch.slot .. ':' .. bucket
    for from = 1, #digests, 4000 do
      redis.call('SADD', key, unpack(digests, from, math.min(from + 3999, #digests)))
    end
    redis.call('EXPIRE', key, KEEP_SEEN_S)
  end
  for key, rows in pairs(batch.rows) do
    for pseudonym, sums in pairs(rows) do
      redis.call('HSET', key, pseudonym, cmsgpack.pack(sums))
    end
    redis.call('EXPIRE', key, KEEP_EVIDENCE_S)
  end
  write_prompts(batch)
  write_days(batch)
end

local function forget_old(days, oldest)
  for name, day in pairs(days) do
    if day < oldest then days[name] = nil end
  end
end

-- A sighting is [pseudonym, version, producer, day, oldest day worth keeping, 1 when of a prompt].
local function see(slot, sightings)
  for _, sighting in ipairs(sightings) do
    local pseudonym, version, producer, day, oldest, is_prompt = unpack(sighting)
    local key = 'ow:' .. slot
    local held = redis.call('HGET', key, pseudonym)
    local owner = held and cmsgpack.unpack(held) or { v = {}, p = {}, d = {} }
    local changed = false
    if (owner.v[version] or '') < day then owner.v[version] = day; changed = true end
    if (owner.p[producer] or '') < day then owner.p[producer] = day; changed = true end
    if is_prompt == 1 and not owner.d[day] then owner.d[day] = day; changed = true end
    if changed then
      forget_old(owner.v, oldest)
      forget_old(owner.p, oldest)
      forget_old(owner.d, oldest)
      redis.call('HSET', key, pseudonym, cmsgpack.pack(owner))
      redis.call('ZADD', 'oc:' .. slot, redis.call('INCR', 'on:' .. slot), pseudonym)
    end
  end
end

-- gw_ingest: one request's evidence in one shard, exactly once.
-- KEYS[1] the shard's set of days. ARGV: slot, msgpack {events, sightings, health, last}.
-- An event is [kind, digest, seen bucket, prompt suffix, pseudonym, owner bucket, day, second,
-- [[guard, cell name], ...], conforming 0/1, numbers]; kind s(tart), e(nd), t(ransition),
-- d(isruption), v(olume: cell name and field in place of the guard pairs, value in numbers),
-- q(uarantined: counts as a record only). Returns [new, duplicate].
local function ingest(_, argv)
  local slot = argv[1]
  local payload = cmsgpack.unpack(argv[2])
  local batch = new_batch(slot)
  local fresh = fresh_events(batch, payload.events)
  local volume = {}
  for _, event in ipairs(fresh) do
    local kind = event[1]
    if kind == 'v' then
      volume[#volume + 1] = event
    elseif kind ~= 'q' then
      apply_prompt_event(batch, event)
    end
    if event[10] >= 0 then
      day_add(batch, event[7], 'records', 1)
      day_add(batch, event[7], 'conforming', event[10])
    end
  end
  for _, event in ipairs(volume) do
    local cell = cell_id(batch, event[9][1])
    local key = string.format('ct:%s:%d:%s', slot, cell, event[7])
    redis.call('HINCRBY', key, event[9][2], event[11][1])
    redis.call('EXPIRE', key, KEEP_EVIDENCE_S)
    batch.touched[event[7]] = true
  end
  write_batch(batch)
  see(slot, payload.sightings)
  local health = 'hl:' .. slot
  for field, by in pairs(payload.health) do redis.call('HINCRBY', health, field, by) end
  redis.call('HINCRBY', health, 'accepted', #fresh)
  redis.call('HINCRBY', health, 'duplicate', #payload.events - #fresh)
  if payload.last > tonumber(redis.call('HGET', health, 'last_record_s') or '0') then
    redis.call('HSET', health, 'last_record_s', payload.last)
  end
  return { #fresh, #payload.events - #fresh }
end

-- gw_lose: close prompts that had no end for 24 h. KEYS[1] due zset. ARGV: slot, now in seconds,
-- at most. Returns how many were lost.
local function lose(keys, argv)
  local batch = new_batch(argv[1])
  local due = redis.call('ZRANGEBYSCORE', keys[1], '-inf', argv[2], 'LIMIT', 0, argv[3])
  local lost = 0
  for _, suffix in ipairs(due) do
    local held = redis.call('GET', 'ps:' .. argv[1] .. ':' .. suffix)
    if held then
      local prompt = cmsgpack.unpack(held)
      prompt.due = nil
      prompt.l = true
      batch.states[suffix] = prompt
      for _, guard in pairs(prompt.g) do
        local sums = guard_row(batch, prompt, guard)
        sums[LOST] = sums[LOST] + 1
      end
      lost = lost + 1
    else
      redis.call('ZREM', keys[1], suffix)
    end
  end
  write_batch(batch)
  return lost
end

redis.register_function('gw_ingest', ingest)
redis.register_function('gw_lose', lose)
