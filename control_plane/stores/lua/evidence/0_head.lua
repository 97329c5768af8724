#!lua name=guardwave_evidence
-- Evidence functions: evidence counts exactly once, in any order of arrival. The sums of a prompt
-- are a function of its known events, which do not depend on the order in which they came. A call
-- subtracts what its prompts added before, applies the new events, adds again, and writes the
-- difference. It reads and computes first and writes last, so that an error of its own leaves
-- nothing half-written. Keys not in KEYS share the slot of KEYS[1]. In Python a cell is a stratum.
--
-- Lua allows 200 local names in all these files together, so private names of a file are in a table.

-- An event is accepted until 48 h after its time and a prompt lasts 24 h at most. So no event of a prompt can
-- come after the prompt's state has expired, and none can count twice. The state is kept some hours longer
-- than that after the last event, because the clocks of intake's processes may differ.
local KEEP_SEEN_S = 72 * 3600
local KEEP_OPEN_S = 73 * 3600
local KEEP_ENDED_S = 51 * 3600
local KEEP_EVIDENCE_S = 120 * 86400
-- Longer than the accept window: while a stream goes on, its counts are known.
local KEEP_STREAM_S = 7 * 86400
local LOST_AFTER_S = 24 * 3600
-- Numbers here are doubles: beyond this a sum would be inexact, so it stops there.
local MOST = 2 ^ 53 - 1
-- First and last number of each known run of a prompt's transitions. A prompt with more runs at a time counts
-- as one with a repeated number, so that memory is bounded.
local MOST_RUNS = 1024
-- Bounds of the names that one sender may bring; further names become OTHER.
local OTHER, MOST_COUNTERS, MOST_NAMES = 'other', 2048, 32
-- Cells that one producer may bring, with an assignment id and as volume without one. Neither another producer
-- nor the other kind loses room to them.
local MOST_CELLS = { vouched = 16384, volume = 4096 }
local MOST_SOURCES, MOST_TREATED = 8192, 2048
local MOST_STARTS, MOST_GAPS, MOST_FALLS = 32, 32, 7
-- How many streams one producer may report within so many seconds. A stream that ended makes room when its
-- points are no longer accepted; the second bound limits the state of ended streams.
local MOST_STREAMS = { [48 * 3600] = 65536, [KEEP_STREAM_S] = 262144 }

-- Places in an owner-day row; CANCELLED to LIMIT (2 to 6) come with the event. The histogram's
-- [bucket, count, ...] pairs follow the sums.
local STARTED, LOST, DISRUPTED, TOKENS, TURNS, WOULD_STOPPED = 1, 7, 8, 9, 10, 11
local STOPPED, CALLS_AFTER, UNRELIABLE, COVERED, ENDED, SWITCHED = 12, 13, 14, 15, 16, 17
-- For sums that an end may leave out: the places that count the prompts without the value.
local UNTOLD = { [TOKENS] = 18, [TURNS] = 19 }
-- How far the scale of the row's histogram is below 7, and loop events of other protections. An imported row
-- without counted loop events has no place for them.
local COARSER, LOOPS, SUMS = 20, 21, 21
-- How many stops and warned candidates of a prompt's guard are kept; beyond it no stop is decided.
local MOST_STOPS = 64
local SAME = 1
local DECIDED_AFTER_S = 120
local STOP_WITHOUT_WARN, SWITCHED_TREATMENT = 'stop_without_warn', 'treatment_switched'
local ENFORCED_ON_UNRELIABLE = 'enforced_on_unreliable_input'

-- The working state of one call: what it has read, and what it will write.
local function new_batch(slot, payload)
  return {
    now = payload.now, is_trusted = payload.trusted == 1, producer = payload.producer,
    slot = slot, cells = {}, names = {}, new_cells = {}, used_cells = {}, brought = {},
    prompts = {}, rows = {}, days = {}, counters = {},
    seen = {}, marks = {}, touched = {}, was_open = {}, health = {}, versions = {}, sources = {},
    streams = {}, treated = {}, newest = {}, unjudged = {}, sessions = {}, changed = {},
    likes = {}, iso_days = {}, told = {}, fresh = 0, repeated = 0, over_limit = 0, forgotten = 0,
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

-- The cell that all cells beyond the bound share: the version becomes OTHER, and so does the guard
-- of volume without an assignment id.
local function shared_name(name)
  local fields = cjson.decode(name)
  local kind = fields[4] == cjson.null and 'volume' or 'vouched'
  if kind == 'volume' then fields[1] = OTHER end
  fields[2] = OTHER
  return cjson.encode(fields), kind
end

-- Note that a cell is in use today, and its budget: once a day for each cell.
local function use_cell(batch, name, used)
  local today, day, by = math.floor(batch.now / 86400), (used or ''):match('^(%-?%d+) (.*)$')
  if not day or tonumber(day) < today then batch.used_cells[name] = today .. ' ' .. (by or '') end
end

-- The name of a new cell: its own while its producer has room, else the shared one; and its budget.
local function name_for(batch, key, name)
  local shared, kind = shared_name(name)
  if shared == name then return name, '' end
  local budget = '#' .. kind .. ':' .. batch.producer
  local brought = batch.brought[budget] or tonumber(redis.call('HGET', key, budget) or '0')
  if brought >= MOST_CELLS[kind] then return shared, '' end
  batch.brought[budget] = brought + 1
  return name, budget
end

local function cell_id(batch, name)
  local id = batch.cells[name]
  if id then return id end
  local key = 'cells:' .. batch.slot
  local held = redis.call('HMGET', key, name, '#' .. name)
  id = held[1] and tonumber(held[1])
  if not id then
    local known, budget = name_for(batch, key, name)
    if known ~= name then
      add(batch.health, 'overflow:cells', 1)
      batch.cells[name] = cell_id(batch, known)
      return batch.cells[name]
    end
    id = (batch.last_cell or tonumber(redis.call('HGET', key, '#') or '0')) + 1
    batch.last_cell = id
    batch.new_cells[name] = id
    held[2] = '-1 ' .. budget
  end
  use_cell(batch, name, held[2])
  batch.cells[name], batch.names[id] = id, name
  return id
end

local function write_cells(batch)
  local key = 'cells:' .. batch.slot
  for name, id in pairs(batch.new_cells) do redis.call('HSET', key, name, id, '#' .. id, name) end
  for name, used in pairs(batch.used_cells) do redis.call('HSET', key, '#' .. name, used) end
  for budget, brought in pairs(batch.brought) do redis.call('HSET', key, budget, brought) end
  if batch.last_cell then redis.call('HSET', key, '#', batch.last_cell) end
end

local function cell_name(batch, id)
  local name = batch.names[id] or redis.call('HGET', 'cells:' .. batch.slot, '#' .. id)
  batch.names[id] = name
  return name
end

local function version_of(batch, name)
  local version = batch.versions[name]
  if not version then
    version = cjson.decode(name)[2]
    batch.versions[name] = version
  end
  return version
end

-- Count in intake's health: for the environment, and for the version of the cell of this name.
local function note(batch, name, field, by)
  add(batch.health, field, by)
  if name then add(inner(batch.sources, version_of(batch, name)), field, by) end
end

-- A prompt: p(seudonym), b(ucket of its owner), d(igests of its events: 3_dedupe.lua), s(tart: second,
-- day, hour, conforming), e(nd: second, day, the numbers of its event, conforming), f(irst day of its events until
-- one of the two is known), q: the sequences of its transitions as sorted runs [first, last, ...], r when one of
-- them was repeated, x: its disruptions by kind, l when lost, z: its decided violations, h: its parts, if its
-- host reports prompts in parts (1_parts.lua), g(uards by name). A guard: c(ell), t: the second of its earliest
-- record, m(ode and cohort of its first record), w(ould stop), p (stops), l(oops of other guards), u(nreliable
-- input), v when switched: reported with two modes or cohorts (versions and waves may differ). The fields that
-- decide delayed invariants are described in 2_prompts.lua.
local function prompt_of(batch, suffix)
  local found = batch.prompts[suffix]
  if found then return found end
  local held = redis.call('GET', 'ps:' .. batch.slot .. ':' .. suffix)
  found = held and cmsgpack.unpack(held)
  batch.prompts[suffix] = found or nil
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
local function place(batch, prompt, told_guard, second, generation)
  local cell, treatment = told_guard.cell, told_guard.treatment
  local guard = prompt.g[told_guard.name]
  if not guard then
    guard = { c = cell, t = second, m = treatment, w = 0, p = 0 }
    prompt.g[told_guard.name] = guard
    if batch.is_trusted then guard.k = SAME end
    return
  end
  if guard.m ~= treatment then guard.v = 1 end
  if batch.is_trusted then
    local told = guard.m == treatment and SAME or treatment
    guard.k = guard.k or told
    if guard.k ~= told then guard.y = math.max(guard.y or 0, generation) end
  end
  if guard.v then batch.unjudged[prompt] = true end
  if guard.c == cell then
    if second < guard.t then guard.t = second end
    return
  end
  if second < guard.t or second == guard.t and cell_name(batch, cell) < cell_name(batch, guard.c) then
    guard.c = cell
    guard.t = second
  end
end

