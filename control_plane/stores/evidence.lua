#!lua name=guardwave_evidence
-- Evidence, exactly once and in any order. What a prompt adds to the sums is a function of what is
-- known of it, and what is known does not depend on the order in which its events came. A call
-- takes back what its prompts added before, learns the new events, adds again, and writes the
-- difference. It reads and computes first and writes last, so that an error of its own leaves
-- nothing half-written. Keys not in KEYS share the slot of KEYS[1].
--
-- Lua allows 200 local names in all these files together: what one file has for itself is in a table.

-- An event is accepted until 48 h after its time and a prompt lasts 24 h at most, so no event of a prompt can
-- come after its memory is gone, and none can be counted again. A prompt is kept so long after what was told of
-- it last, with some hours more: the clocks of those who accept may differ.
local KEEP_SEEN_S = 72 * 3600
local KEEP_OPEN_S = 73 * 3600
local KEEP_ENDED_S = 51 * 3600
local KEEP_EVIDENCE_S = 120 * 86400
-- Longer than the accept window: while a stream goes on, what was counted of it is known.
local KEEP_STREAM_S = 7 * 86400
local LOST_AFTER_S = 24 * 3600
-- Numbers here are doubles: beyond this a sum would lose count, so it stays at it.
local MOST = 2 ^ 53 - 1
-- First and last number of each run of transitions that is known of a prompt. One with more runs at a time counts
-- as one with a repetition: memory is bounded.
local MOST_RUNS = 1024
-- What one sender may name without bound is bounded here; what is beyond it becomes OTHER.
local OTHER, MOST_COUNTERS, MOST_NAMES = 'other', 2048, 32
-- Cells that one producer may bring: what one makes without bound takes no room from another, and what no
-- assignment id vouches for takes none from what one does.
local MOST_CELLS = { vouched = 16384, volume = 4096 }
local MOST_SOURCES, MOST_TREATED = 8192, 2048
local MOST_STARTS, MOST_GAPS, MOST_FALLS = 32, 32, 7
-- By seconds: of how many streams one producer may have told within them. One that ended makes room when no
-- point of it is accepted any more, and what is still known of those that ended is bounded, too.
local MOST_STREAMS = { [48 * 3600] = 65536, [KEEP_STREAM_S] = 262144 }

-- Places in an owner-day row; CANCELLED to LIMIT (2 to 6) come with the event. The histogram's
-- [bucket, count, ...] pairs follow the sums.
local STARTED, LOST, DISRUPTED, TOKENS, TURNS, WOULD_STOPPED = 1, 7, 8, 9, 10, 11
local STOPPED, CALLS_AFTER, UNRELIABLE, COVERED, ENDED, SWITCHED = 12, 13, 14, 15, 16, 17
-- Of sums that an end may leave out: where the prompts that left it out are counted.
local UNTOLD = { [TOKENS] = 18, [TURNS] = 19 }
-- By how much the scale of the row's histogram is below 7; then loop events of other protections. An imported row
-- of which nobody counted them has no place for them.
local COARSER, LOOPS, SUMS = 20, 21, 21
-- What is kept of a prompt's guard to decide its stops by; beyond it none is decided.
local MOST_STOPS = 64
local SAME = 1
local DECIDED_AFTER_S = 120
local STOP_WITHOUT_WARN, SWITCHED_TREATMENT = 'stop_without_warn', 'treatment_switched'
local ENFORCED_ON_UNRELIABLE = 'enforced_on_unreliable_input'

-- What one call has learned and will write.
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

-- The cell that all beyond the bound share: the version becomes OTHER, and so does the guard where
-- no assignment id vouches for it.
local function shared_name(name)
  local fields = cjson.decode(name)
  local kind = fields[4] == cjson.null and 'volume' or 'vouched'
  if kind == 'volume' then fields[1] = OTHER end
  fields[2] = OTHER
  return cjson.encode(fields), kind
end

-- Note that a cell is in use today, and whose budget it counts in: once a day for each cell.
local function use_cell(batch, name, used)
  local today, day, by = math.floor(batch.now / 86400), (used or ''):match('^(%-?%d+) (.*)$')
  if not day or tonumber(day) < today then batch.used_cells[name] = today .. ' ' .. (by or '') end
end

-- The name under which a new cell is known: its own while its producer has room for more.
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

-- A prompt: p(seudonym), b(ucket of its owner), d(igests of its events: evidence_3_seen.lua), s(tart: second,
-- day, hour, conforming), e(nd: second, day, the numbers of its event, conforming), f(irst day of its events until
-- one of the two is known), q: the sequences of its transitions as sorted runs [first, last, ...], r when one of
-- them was repeated, x: its disruptions by kind, l when lost, z: its violations that were decided, h(ow its host
-- told of it in parts: evidence_1_parts.lua), g(uards by name). A guard:
-- c(ell), the second t that it was seen at, m(ode and cohort that it was first told with), w(ould stop),
-- p (stops), l(oops of other guards), u(nreliable input), v when switched: told with two modes or cohorts.
-- Versions and waves may differ, that is no switch. What its delayed invariants are decided by is in
-- evidence_2_prompts.lua.
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

