-- The registered functions, and the events that belong to no prompt.

-- Kinds of event that name a cell and no guards.
local OF_NO_PROMPT = { v = true, m = true }

-- The name of a prompt's start, as volume.
local STARTS = 'agent.guard.prompt.start'

local function count_volume(batch, event)
  local cell = cell_id(batch, event[9][1])
  local counter = inner(batch.counters, string.format('ct:%s:%d:%s', batch.slot, cell, event[7]))
  counter.day = event[7]
  add(inner(counter, 'sums'), event[9][2], event[11][1])
  -- A prompt without an assignment id counts, too: its host counts it with the others.
  if event[9][2] == STARTS and batch.is_trusted then
    add(inner(batch.days, event[7]), told_sum(batch, cell), 1)
  end
end

-- The name of the event's cell, nil when it has none.
local function name_of(event)
  if event[1] == 'r' then return nil end
  return OF_NO_PROMPT[event[1]] and event[9][1] or event[9][1][2]
end

local function count_record_of(batch, event)
  if event[10] < 0 then return end
  local sums = inner(batch.days, event[7])
  add(sums, 'records', 1)
  add(sums, 'conforming', event[10])
end

-- Count an event by the version of its cell, and by the treatment of its assignment id.
local function count_source(batch, event, is_fresh)
  local name = name_of(event)
  if not name then return end
  local version = version_of(batch, name)
  count_version(batch, version, is_fresh and 'accepted' or 'duplicate', 1)
  if not is_fresh then return end
  batch.newest[version] = math.max(batch.newest[version] or 0, event[8])
  if OF_NO_PROMPT[event[1]] then return end
  for _, guard in ipairs(event[9]) do count_treated(batch, guard[1], guard[3], event[13], 1) end
end

-- gw_ingest: one request's evidence in one shard, exactly once.
-- KEYS[1] the shard's set of days. ARGV: slot, msgpack {likes, prompts, events, sightings, health, last,
-- now, producer, trusted 0/1, sources: version -> health field -> count, refused: rejected items
-- (4_refused.lua)}.
-- `likes` and `prompts` hold the events of prompts (4_prompts.lua). Any other event is
-- [kind, digest, seen bucket, prompt suffix, pseudonym, owner bucket, day, second,
-- [[guard, cell name, treatment], ...], conforming 0/1 or -1 for no record, numbers, health fields
-- that it raises by one when it is new, generation of the assignment id]; kind o(pened: a session in place
-- of the prompt, its millisecond), v(olume: cell name and counter in place of the guards), m(etric point:
-- 3_streams.lua; a stream in place of the prompt), r(ejected: only raises its health fields).
-- Returns [new, duplicate, new points of streams beyond their producer's bound, new points of forgotten starts];
-- points of the last two add nothing.
local function ingest(_, argv)
  local slot, payload = argv[1], cmsgpack.unpack(argv[2])
  local batch = new_batch(slot, payload)
  local fresh, repeated = fresh_events(batch, payload.events)
  local refused = 0
  for _, event in ipairs(fresh) do
    local kind = event[1]
    if kind == 'v' then
      count_volume(batch, event)
    elseif kind == 'm' then
      take_point(batch, event)
    elseif kind == 'o' then
      open_session(batch, event)
    else
      refused = refused + 1
    end
    count_source(batch, event, true)
    for _, field in ipairs(event[12]) do note(batch, name_of(event), field, 1) end
    count_record_of(batch, event)
  end
  for _, event in ipairs(repeated) do count_source(batch, event, false) end
  take_prompts(batch, payload)
  settle_sessions(batch)
  for _, prompt in pairs(batch.changed) do count(batch, prompt, 1) end
  refusals.count(batch, payload.refused)
  local writes, owners = settle(batch), sighted.learn(slot, payload.sightings)
  write(batch, writes)
  sighted.write(batch, owners)
  refusals.write(batch)
  write_instances(batch)
  local new, known = #fresh + batch.fresh, #repeated + batch.repeated
  write_health(batch, payload, new - refused, known)
  return { new, known, batch.over_limit, batch.forgotten }
end

-- gw_lose: close prompts that had no end for 24 h as lost. KEYS[1] due zset. ARGV: slot, now in seconds,
-- at most. Returns [how many were lost, how many due prompts the call has read].
local function lose(keys, argv)
  local batch, lost = new_batch(argv[1], { now = tonumber(argv[2]) }), 0
  local due = redis.call('ZRANGEBYSCORE', keys[1], '-inf', argv[2], 'LIMIT', 0, argv[3])
  for _, suffix in ipairs(due) do
    local held = redis.call('GET', 'ps:' .. argv[1] .. ':' .. suffix)
    if held then
      local prompt = cmsgpack.unpack(held)
      take_back(batch, suffix, prompt)
      prompt.l = 1
      count(batch, prompt, 1)
      lost = lost + 1
    end
  end
  write(batch, settle(batch))
  for _, suffix in ipairs(due) do redis.call('ZREM', keys[1], suffix) end
  return { lost, #due }
end

-- gw_overdue: violations that no late record explained within two minutes. KEYS[1] zset of suspects.
-- ARGV: slot, now in seconds, at most. Returns a list of [suffix, guard, invariant, severity, generation,
-- cell name]; a violation is returned again until gw_decide marks it as decided.
local function overdue(keys, argv)
  local batch, found = new_batch(argv[1], { now = tonumber(argv[2]) }), {}
  local due = redis.call('ZRANGEBYSCORE', keys[1], '-inf', argv[2], 'LIMIT', 0, argv[3])
  for _, suffix in ipairs(due) do
    local held = redis.call('GET', 'ps:' .. argv[1] .. ':' .. suffix)
    local prompt = held and cmsgpack.unpack(held)
    for _, each in pairs(prompt and violations_of(prompt) or {}) do
      local name = cell_name(batch, prompt.g[each.guard].c)
      found[#found + 1] = { suffix, each.guard, each.invariant, each.worth, each.generation, name }
    end
    if not prompt then redis.call('ZREM', keys[1], suffix) end
  end
  return found
end

-- gw_decide: mark a violation as decided. KEYS[1] zset of suspects. ARGV: slot, suffix, guard, invariant,
-- severity, the health counter that it raises or ''. Returns 1 when it was undecided, else 0.
local function decide(keys, argv)
  local slot, suffix, key = argv[1], argv[2], argv[3] .. ':' .. argv[4]
  local at = 'ps:' .. slot .. ':' .. suffix
  local held = redis.call('GET', at)
  local prompt = held and cmsgpack.unpack(held)
  local worth = tonumber(argv[5])
  if not prompt or worth <= (inner(prompt, 'z')[key] or 0) then return 0 end
  prompt.z[key] = worth
  if argv[6] ~= '' then redis.call('HINCRBY', 'hl:' .. slot, argv[6], 1) end
  local keep = KEEP_EVIDENCE_S
  judge(prompt)
  if not prompt.j then
    redis.call('ZREM', keys[1], suffix)
    keep = KEEP_OPEN_S
  end
  redis.call('SET', at, cmsgpack.pack(prompt), 'EX', keep)
  return 1
end

-- gw_forget_owners: forget the activity of owners not seen since a day. KEYS[1] hash of activity. ARGV: slot,
-- cursor, oldest day that is kept, how many to read. Returns [next cursor, how many were forgotten].
local function forget_owners(keys, argv)
  local slot, oldest, forgotten = argv[1], argv[3], 0
  local answer = redis.call('HSCAN', keys[1], argv[2], 'COUNT', argv[4])
  for at = 1, #answer[2], 2 do
    local pseudonym, newest = answer[2][at], ''
    for _, days in pairs(cmsgpack.unpack(answer[2][at + 1])) do
      for _, day in pairs(days) do newest = day > newest and day or newest end
    end
    if newest < oldest then
      redis.call('HDEL', keys[1], pseudonym)
      if redis.call('HEXISTS', 'of:' .. slot, pseudonym) == 0 then
        redis.call('ZREM', 'oc:' .. slot, pseudonym)
      end
      forgotten = forgotten + 1
    end
  end
  return { tonumber(answer[1]), forgotten }
end

redis.register_function('gw_forget_owners', forget_owners)
redis.register_function('gw_overdue', overdue)
redis.register_function('gw_decide', decide)
redis.register_function('gw_ingest', ingest)
redis.register_function('gw_lose', lose)

-- gw_forget_cells: forget cells without use. Numbers are never used again, so a row that outlives its cell belongs
-- to no other. KEYS[1] hash of cells. ARGV: cursor, number of the oldest day of use of a cell that stays, how many
-- to read. Returns [next cursor, how many were forgotten].
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
