-- The second part of the library that evidence.lua begins: reading, writing, and the calls.

local function known_marks(batch, events)
  local digests_of = {}
  for _, event in ipairs(events) do
    local digests = inner(digests_of, event[3])
    digests[#digests + 1] = event[2]
  end
  local known = {}
  for bucket, digests in pairs(digests_of) do
    local key = 'dd:' .. batch.slot .. ':' .. bucket
    local marks = inner(known, bucket)
    for from = 1, #digests, 4000 do
      local to = math.min(from + 3999, #digests)
      local answer = redis.call('SMISMEMBER', key, unpack(digests, from, to))
      for at, flag in ipairs(answer) do marks[digests[from + at - 1]] = flag == 1 end
    end
  end
  return known
end

local function fresh_events(batch, events)
  local known = known_marks(batch, events)
  local fresh = {}
  for _, event in ipairs(events) do
    local marks = known[event[3]]
    if not marks[event[2]] then
      marks[event[2]] = true
      fresh[#fresh + 1] = event
      local seen = inner(batch.seen, event[3])
      seen[#seen + 1] = event[2]
    end
  end
  return fresh
end

local function sum_of(held, by)
  return math.min((held or 0) + by, MOST)
end

-- An owner's row after the change: packed, false when no prompt is left in it, nil when the change
-- changes nothing.
local function changed_row(key, pseudonym, change)
  local differs = false
  for _, by in pairs(change.sums) do differs = differs or by ~= 0 end
  for _, by in pairs(change.buckets) do differs = differs or by ~= 0 end
  if not differs then return nil end
  local held = redis.call('HGET', key, pseudonym)
  local row = held and cmsgpack.unpack(held) or {}
  local after, buckets = {}, change.buckets
  for at = 1, SUMS do after[at] = sum_of(row[at], change.sums[at] or 0) end
  if after[STARTED] == 0 and after[SWITCHED] == 0 then return false end
  for at = SUMS + 1, #row, 2 do buckets[row[at]] = sum_of(row[at + 1], buckets[row[at]] or 0) end
  for bucket, prompts in pairs(buckets) do
    if prompts ~= 0 then after[#after + 1] = bucket; after[#after + 1] = prompts end
  end
  return cmsgpack.pack(after)
end

-- A cell's counters of a day after the change: what is new beyond the bound becomes OTHER.
local function changed_counters(batch, key, sums)
  local fields, after, shared = redis.call('HLEN', key), {}, 0
  for field, by in pairs(sums) do
    local held = redis.call('HGET', key, field)
    if held or fields < MOST_COUNTERS then
      after[field] = sum_of(tonumber(held or '0'), by)
      if not held then fields = fields + 1 end
    else
      add(batch.health, 'overflow:counters', 1)
      shared = sum_of(shared, by)
    end
  end
  if shared > 0 then
    after[OTHER] = sum_of(tonumber(redis.call('HGET', key, OTHER) or '0'), shared)
  end
  return after
end

-- What is to be written of rows and counters, and the days that change; still only reads.
local function settle(batch)
  local writes = {}
  for key, row in pairs(batch.rows) do
    for pseudonym, change in pairs(row.owners) do
      local packed = changed_row(key, pseudonym, change)
      if packed ~= nil then
        writes[#writes + 1] = { key, pseudonym, packed }
        batch.touched[row.day] = true
      end
    end
  end
  for key, counter in pairs(batch.counters) do
    for field, sum in pairs(changed_counters(batch, key, counter.sums)) do
      writes[#writes + 1] = { key, field, string.format('%.0f', sum) }
    end
    batch.touched[counter.day] = true
  end
  for day, sums in pairs(batch.days) do
    for _, by in pairs(sums) do
      if by ~= 0 then batch.touched[day] = true end
    end
  end
  return writes
end

local function write_prompts(batch)
  local due = 'due:' .. batch.slot
  for suffix, prompt in pairs(batch.prompts) do
    if is_open(prompt) then
      redis.call('ZADD', due, prompt.s[1] + LOST_AFTER_S, suffix)
    elseif batch.was_open[prompt] then
      redis.call('ZREM', due, suffix)
    end
    local keep = prompt.e and KEEP_ENDED_S or KEEP_OPEN_S
    redis.call('SET', 'ps:' .. batch.slot .. ':' .. suffix, cmsgpack.pack(prompt), 'EX', keep)
  end
end

local function write_days(batch)
  for day in pairs(batch.touched) do
    local key = 'dy:' .. batch.slot .. ':' .. day
    for field, by in pairs(batch.days[day] or {}) do
      if by ~= 0 then redis.call('HINCRBY', key, field, by) end
    end
    local is_sealed = redis.call('HEXISTS', key, 'sealed_at') == 1
    if is_sealed then redis.call('HINCRBY', key, 'revision', 1) end
    redis.call('EXPIRE', key, KEEP_EVIDENCE_S)
    redis.call('SADD', 'dys:' .. batch.slot, day)
  end
end

local function write(batch, writes)
  for bucket, digests in pairs(batch.seen) do
    local key = 'dd:' .. batch.slot .. ':' .. bucket
    for from = 1, #digests, 4000 do
      redis.call('SADD', key, unpack(digests, from, math.min(from + 3999, #digests)))
    end
    redis.call('EXPIRE', key, KEEP_SEEN_S)
  end
  local cells = 'cells:' .. batch.slot
  for name, id in pairs(batch.new_cells) do
    redis.call('HSET', cells, name, id, '#' .. id, name)
  end
  if batch.last_cell then redis.call('HSET', cells, '#', batch.last_cell) end
  local keys = {}
  for _, each in ipairs(writes) do
    local key, field, value = unpack(each)
    if value then redis.call('HSET', key, field, value) else redis.call('HDEL', key, field) end
    keys[key] = true
  end
  for key in pairs(keys) do redis.call('EXPIRE', key, KEEP_EVIDENCE_S) end
  write_prompts(batch)
  write_days(batch)
end

-- A sighting is [pseudonym, version, producer, day, oldest day worth keeping, 1 when of a prompt].
local function sighted(slot, sightings)
  local owners = {}
  for _, sighting in ipairs(sightings) do
    local pseudonym, version, producer, day, oldest, is_prompt = unpack(sighting)
    local owner = owners[pseudonym]
    if not owner then
      local held = redis.call('HGET', 'ow:' .. slot, pseudonym)
      owner = held and cmsgpack.unpack(held) or { v = {}, p = {}, d = {} }
      owners[pseudonym] = owner
    end
    local news = { v = version, p = producer, d = is_prompt == 1 and day or nil }
    for part, name in pairs(news) do
      if (owner[part][name] or '') < day then owner[part][name] = day; owner.changed = oldest end
    end
  end
  return owners
end

-- The newest names of a map from name to day, at most MOST_NAMES, and how many were left out.
local function newest(days)
  local names, kept = {}, {}
  for name in pairs(days) do names[#names + 1] = name end
  table.sort(names, function(a, b)
    if days[a] ~= days[b] then return days[a] > days[b] end
    return a < b
  end)
  for at = 1, math.min(#names, MOST_NAMES) do kept[names[at]] = days[names[at]] end
  return kept, math.max(#names - MOST_NAMES, 0)
end

local function write_owners(batch, owners)
  local slot = batch.slot
  local over = { v = 'overflow:versions', p = 'overflow:producers', d = 'overflow:prompt_days' }
  for pseudonym, owner in pairs(owners) do
    local oldest = owner.changed
    if oldest then
      local kept = {}
      for part, field in pairs(over) do
        local recent, left_out = {}, 0
        for name, day in pairs(owner[part]) do
          if day >= oldest then recent[name] = day end
        end
        kept[part], left_out = newest(recent)
        if left_out > 0 then add(batch.health, field, left_out) end
      end
      redis.call('HSET', 'ow:' .. slot, pseudonym, cmsgpack.pack(kept))
      redis.call('ZADD', 'oc:' .. slot, redis.call('INCR', 'on:' .. slot), pseudonym)
    end
  end
end

local function write_health(batch, payload, fresh, refused)
  local health = 'hl:' .. batch.slot
  for _, counts in ipairs({ payload.health, batch.health }) do
    for field, by in pairs(counts) do redis.call('HINCRBY', health, field, by) end
  end
  redis.call('HINCRBY', health, 'accepted', fresh - refused)
  redis.call('HINCRBY', health, 'duplicate', #payload.events - fresh)
  if payload.last > tonumber(redis.call('HGET', health, 'last_record_s') or '0') then
    redis.call('HSET', health, 'last_record_s', payload.last)
  end
end

local function count_volume(batch, event)
  local cell = cell_id(batch, event[9][1])
  local counter = inner(batch.counters, string.format('ct:%s:%d:%s', batch.slot, cell, event[7]))
  counter.day = event[7]
  add(inner(counter, 'sums'), event[9][2], event[11][1])
end

-- Kinds of event of which a prompt knows whether their record was counted.
local OF_A_PROMPT = { s = true, e = true, d = true }

-- gw_ingest: one request's evidence in one shard, exactly once.
-- KEYS[1] the shard's set of days. ARGV: slot, msgpack {events, sightings, health, last}.
-- An event is [kind, digest, seen bucket, prompt suffix, pseudonym, owner bucket, day, second,
-- [[guard, cell name, treatment], ...], conforming 0/1 or -1 for no record, numbers, health fields
-- that it raises by one when it is new]; kind s(tart), e(nd), t(ransition), d(isruption),
-- v(olume: cell name and counter in place of the guards), q(uarantined: counts as a record only),
-- r(efused: only raises its health fields).
-- Returns [new, duplicate].
local function ingest(_, argv)
  local slot, payload = argv[1], cmsgpack.unpack(argv[2])
  local batch = new_batch(slot)
  local fresh = fresh_events(batch, payload.events)
  local taken_back, refused = {}, 0
  for _, event in ipairs(fresh) do
    if event[1] == 'v' then
      count_volume(batch, event)
    elseif event[1] == 'r' then
      refused = refused + 1
    elseif event[1] ~= 'q' then
      local prompt = prompt_of(batch, event)
      if not taken_back[prompt] then
        batch.was_open[prompt] = is_open(prompt)
        count(batch, prompt, -1)
        taken_back[prompt] = true
      end
      learn(batch, prompt, event)
    end
    for _, field in ipairs(event[12]) do add(batch.health, field, 1) end
    if event[10] >= 0 and not OF_A_PROMPT[event[1]] then
      local sums = inner(batch.days, event[7])
      add(sums, 'records', 1)
      add(sums, 'conforming', event[10])
    end
  end
  for prompt in pairs(taken_back) do count(batch, prompt, 1) end
  local writes, owners = settle(batch), sighted(slot, payload.sightings)
  write(batch, writes)
  write_owners(batch, owners)
  write_health(batch, payload, #fresh, refused)
  return { #fresh, #payload.events - #fresh }
end

-- gw_lose: close prompts that had no end for 24 h. KEYS[1] due zset. ARGV: slot, now in seconds,
-- at most. Returns how many were lost.
local function lose(keys, argv)
  local batch, lost, gone = new_batch(argv[1]), 0, {}
  local due = redis.call('ZRANGEBYSCORE', keys[1], '-inf', argv[2], 'LIMIT', 0, argv[3])
  for _, suffix in ipairs(due) do
    local held = redis.call('GET', 'ps:' .. argv[1] .. ':' .. suffix)
    if held then
      local prompt = cmsgpack.unpack(held)
      batch.was_open[prompt] = is_open(prompt)
      count(batch, prompt, -1)
      prompt.l = 1
      count(batch, prompt, 1)
      batch.prompts[suffix] = prompt
      lost = lost + 1
    else
      gone[#gone + 1] = suffix
    end
  end
  write(batch, settle(batch))
  for _, suffix in ipairs(gone) do redis.call('ZREM', keys[1], suffix) end
  return lost
end

redis.register_function('gw_ingest', ingest)
redis.register_function('gw_lose', lose)
