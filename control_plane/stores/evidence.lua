#!lua name=guardwave_evidence
-- Evidence, exactly once and in any order. What a prompt adds to the sums is a function of what is
-- known of it, and what is known does not depend on the order in which its events came. A call
-- takes back what its prompts added before, learns the new events, adds again, and writes the
-- difference. It reads and computes first and writes last, so that an error of its own leaves
-- nothing half-written. Keys not in KEYS share the slot of KEYS[1].

-- An event is accepted until 48 h after its time and a prompt lasts 24 h at most, so no event of a
-- prompt can come after its memory is gone, and none can be counted again.
local KEEP_SEEN_S = 72 * 3600
local KEEP_OPEN_S = 73 * 3600
local KEEP_ENDED_S = 49 * 3600
local KEEP_EVIDENCE_S = 120 * 86400
local LOST_AFTER_S = 24 * 3600
-- Numbers here are doubles: beyond this a sum would lose count, so it stays at it.
local MOST = 2 ^ 53 - 1
-- A prompt with more gaps than half of this counts as one with a repetition: memory is bounded.
local MOST_RUNS = 1024
-- What one sender may name without bound is bounded here; what is beyond it becomes OTHER.
local OTHER, MOST_CELLS, MOST_COUNTERS, MOST_NAMES = 'other', 16384, 2048, 32

-- Places in an owner-day row; CANCELLED to LIMIT (2 to 6) come with the event. The histogram's
-- [bucket, count, ...] pairs follow the sums.
local STARTED, LOST, DISRUPTED, TOKENS, TURNS, WOULD_STOPPED = 1, 7, 8, 9, 10, 11
local STOPPED, CALLS_AFTER, UNRELIABLE, COVERED, ENDED, SWITCHED, SUMS = 12, 13, 14, 15, 16, 17, 17

-- What one call has learned and will write.
local function new_batch(slot)
  return {
    slot = slot, cells = {}, names = {}, new_cells = {}, prompts = {}, rows = {}, days = {}, counters = {},
    seen = {}, touched = {}, was_open = {}, health = {},
  }
end

local function add(sums, field, by)
  sums[field] = (sums[field] or 0) + by
end

local function inner(outer, key)
  local found = outer[key]
  if not found then found = {}; outer[key] = found end
  return found
end

-- The cell that all beyond the bound share: the version becomes OTHER, and so does the guard where
-- no assignment id vouches for it.
local function shared_name(name)
  local fields = cjson.decode(name)
  if fields[4] == cjson.null then fields[1] = OTHER end
  fields[2] = OTHER
  return cjson.encode(fields)
end

local function cell_id(batch, name)
  local id = batch.cells[name]
  if id then return id end
  local key = 'cells:' .. batch.slot
  local held = redis.call('HGET', key, name)
  id = held and tonumber(held)
  if not id then
    local last = batch.last_cell or tonumber(redis.call('HGET', key, '#') or '0')
    local shared = last >= MOST_CELLS and shared_name(name) or name
    if shared ~= name then
      add(batch.health, 'overflow:cells', 1)
      batch.cells[name] = cell_id(batch, shared)
      return batch.cells[name]
    end
    id = last + 1
    batch.last_cell = id
    batch.new_cells[name] = id
  end
  batch.cells[name], batch.names[id] = id, name
  return id
end

local function cell_name(batch, id)
  local name = batch.names[id] or redis.call('HGET', 'cells:' .. batch.slot, '#' .. id)
  batch.names[id] = name
  return name
end

-- A prompt: p(seudonym), b(ucket of its owner), s(tart: second, day, hour, conforming), e(nd: second,
-- day, the numbers of its event, conforming), f(irst day of its events until one of the two is known), q: the
-- sequences of its transitions as sorted runs [first, last, ...], r when one of them was repeated,
-- x: its disruptions by kind, l when lost, g(uards by name). A guard: c(ell), the second t that it was seen
-- at, m(ode and cohort that it was first told with), w(ould stop), p (stops), u(nreliable input),
-- v when switched: told with two modes or cohorts. Versions and waves may differ, that is no switch.
local function prompt_of(batch, event)
  local found = batch.prompts[event[4]]
  if found then return found end
  local held = redis.call('GET', 'ps:' .. batch.slot .. ':' .. event[4])
  if held then
    found = cmsgpack.unpack(held)
  else
    found = { p = event[5], b = event[6], q = {}, g = {} }
  end
  batch.prompts[event[4]] = found
  return found
end

-- Whether list a comes before list b: the first place where they differ decides.
local function precedes(a, b)
  for at = 1, #a do
    if a[at] ~= b[at] then
      if type(a[at]) ~= type(b[at]) then return type(a[at]) < type(b[at]) end
      return a[at] < b[at]
    end
  end
  return false
end

local function earliest(held, new)
  if held and not precedes(new, held) then return held end
  return new
end

-- A prompt stays in the cell of its earliest record: intention to treat.
local function place(batch, prompt, pair, second)
  local cell = cell_id(batch, pair[2])
  local guard = prompt.g[pair[1]]
  if not guard then
    prompt.g[pair[1]] = { c = cell, t = second, m = pair[3], w = 0, p = 0 }
    return
  end
  if guard.m ~= pair[3] then guard.v = 1 end
  if guard.c == cell then
    if second < guard.t then guard.t = second end
    return
  end
  if second < guard.t or second == guard.t and cell_name(batch, cell) < cell_name(batch, guard.c) then
    guard.c = cell
    guard.t = second
  end
end

-- Add a sequence to the runs, and join it with the runs beside it.
local function number(prompt, sequence)
  local runs, at = prompt.q, 1
  while runs[at] and runs[at + 1] < sequence do at = at + 2 end
  if prompt.r or #runs >= MOST_RUNS or runs[at] and runs[at] <= sequence then
    prompt.r, prompt.q = 1, {}
    return
  end
  table.insert(runs, at, sequence)
  table.insert(runs, at, sequence)
  if runs[at + 2] == sequence + 1 then
    table.remove(runs, at + 1)
    table.remove(runs, at + 1)
  end
  if runs[at - 1] == sequence - 1 then
    table.remove(runs, at - 1)
    table.remove(runs, at - 1)
  end
end

local function learn(batch, prompt, event)
  local kind, day, second, numbers = event[1], event[7], event[8], event[11]
  for _, pair in ipairs(event[9]) do place(batch, prompt, pair, second) end
  if kind == 's' then
    prompt.s = earliest(prompt.s, { second, day, numbers[1], event[10] })
  elseif kind == 'e' then
    numbers[#numbers + 1] = event[10]
    prompt.e = earliest(prompt.e, { second, day, unpack(numbers) })
  elseif kind == 'd' then
    prompt.x = prompt.x or {}
    prompt.x[numbers[1]] = earliest(prompt.x[numbers[1]], { second, day, event[10] })
  else
    local sequence, would_stop, stop, unreliable = unpack(numbers)
    number(prompt, sequence)
    local guard = prompt.g[event[9][1][1]]
    guard.w = guard.w + would_stop
    guard.p = guard.p + stop
    if unreliable == 1 then guard.u = 1 end
  end
  if prompt.s or prompt.e then
    prompt.f = nil
  elseif not prompt.f or day < prompt.f then
    prompt.f = day
  end
end

local function is_open(prompt)
  return prompt.s and not prompt.e and not prompt.l
end

-- Covered: a start, an end, and as many transitions as the end reports, numbered from 1 without a
-- gap or a repetition.
local function is_covered(prompt, reported)
  if prompt.r or not (prompt.s and prompt.e) then return false end
  if reported == 0 then return #prompt.q == 0 end
  return #prompt.q == 2 and prompt.q[1] == 1 and prompt.q[2] == reported
end

local function change_of(batch, prompt, guard, day)
  local key = string.format('od:%s:%d:%s:%02x', batch.slot, guard.c, day, prompt.b)
  local row = inner(batch.rows, key)
  row.day = day
  local owners = inner(row, 'owners')
  local change = owners[prompt.p]
  if not change then change = { sums = {}, buckets = {} }; owners[prompt.p] = change end
  return change
end

local function count_record(batch, told, sign)
  local sums = inner(batch.days, told[2])
  add(sums, 'records', sign)
  add(sums, 'conforming', sign * told[#told])
end

-- A record about several guards comes as one event for each, and its copies may name others: in the
-- contract a prompt has one start, one end and one disruption of a kind.
local function count_records(batch, prompt, sign)
  if prompt.s then count_record(batch, prompt.s, sign) end
  if prompt.e then count_record(batch, prompt.e, sign) end
  for _, told in pairs(prompt.x or {}) do count_record(batch, told, sign) end
end

-- Add all that a prompt adds to the sums; with the sign -1 take it back. A prompt is booked on the
-- day of its start, as far as that is known; an end without a start counts as started.
local function count(batch, prompt, sign)
  count_records(batch, prompt, sign)
  local _, day, outcome, tokens, turns, bucket, reported, calls_after, hour
  if prompt.e then
    _, day, outcome, tokens, turns, bucket, reported, calls_after, hour = unpack(prompt.e)
  end
  if prompt.s then _, day, hour = unpack(prompt.s) end
  for _, guard in pairs(prompt.g) do
    -- Known before the prompt has a day: a host that switches may never tell a start or an end.
    if guard.v then add(change_of(batch, prompt, guard, day or prompt.f).sums, SWITCHED, sign) end
  end
  if not day then return end
  local covered = is_covered(prompt, reported)
  for _, guard in pairs(prompt.g) do
    local change = change_of(batch, prompt, guard, day)
    local sums = change.sums
    add(sums, STARTED, sign)
    add(sums, WOULD_STOPPED, sign * guard.w)
    add(sums, STOPPED, sign * guard.p)
    if guard.u then add(sums, UNRELIABLE, sign) end
    if prompt.x then add(sums, DISRUPTED, sign) end
    if covered then add(sums, COVERED, sign) end
    if prompt.e then
      add(sums, outcome, sign)
      add(sums, ENDED, sign)
      add(sums, TOKENS, sign * tokens)
      add(sums, TURNS, sign * turns)
      add(sums, CALLS_AFTER, sign * calls_after)
      if bucket then add(change.buckets, bucket, sign) end
    elseif prompt.l then
      add(sums, LOST, sign)
    end
  end
  local sums = inner(batch.days, day)
  add(sums, 'h' .. hour, sign)
  if prompt.e then add(sums, 'ended', sign) end
  if covered then add(sums, 'covered', sign) end
end
