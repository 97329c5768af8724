-- Prompts: their state, what they add to the sums, and the delayed invariants that they violate (a warning comes
-- before a stop of the same candidate; one treatment in a prompt; no stop after unreliable input).
--
-- For these invariants a guard has, if needed: k: the treatment that a trusted producer reported first (SAME when
-- that is m), y: the generation of a trusted record with another one, h: the first sequence of a warning for each
-- ordinal and a: the first of any warning, o in place of both when more than MOST_STOPS ordinals had a warning,
-- s: its first stops [sequence, ordinal, generation, trusted] and i: the sequence of the last of these, n and nt:
-- the first sequence of unreliable input reported by anybody, and by a trusted producer. h and s are packed
-- separately, because most calls do not need them, and unpacking their tables would cost most. If a host numbers
-- nothing, the millisecond is used as sequence, and a stop ends with 1 if its record says that no warning came
-- before it, else 0. A prompt has u when a trusted producer reported it without numbers, and j while it has an
-- undecided violation.

-- Add a sequence to the runs, and join it with neighbouring runs.
local function number(prompt, sequence)
  local runs, at = prompt.q, 1
  if runs[#runs] == sequence - 1 then
    runs[#runs] = sequence
    return
  end
  while runs[at] and runs[at + 1] < sequence do at = at + 2 end
  if prompt.r or runs[at] and runs[at] <= sequence then
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
  if #runs > MOST_RUNS then prompt.r, prompt.q = 1, {} end
end

local function lowest(held, new)
  return held and math.min(held, new) or new
end

local function unpacked(held)
  if type(held) == 'string' then return cmsgpack.unpack(held) end
  return held or {}
end

-- A prompt in its stored form, after all its events of the call.
local function packed(prompt)
  for _, guard in pairs(prompt.g) do
    if type(guard.h) == 'table' then guard.h = cmsgpack.pack(guard.h) end
    if type(guard.s) == 'table' then guard.s = cmsgpack.pack(guard.s) end
  end
  return cmsgpack.pack(prompt)
end

local function keep_warning(guard, sequence, ordinal)
  if guard.o then return end
  local warned, ordinals = unpacked(guard.h), 0
  guard.a, guard.h = lowest(guard.a, sequence), warned
  local is_first = not warned[ordinal]
  warned[ordinal] = lowest(warned[ordinal], sequence)
  if not is_first then return end
  for _ in pairs(warned) do ordinals = ordinals + 1 end
  if ordinals > MOST_STOPS then guard.h, guard.a, guard.o = nil, nil, 1 end
end

-- Sorted, so that the kept stops do not depend on the order of arrival.
local function keep_stop(guard, stop)
  local stops = unpacked(guard.s)
  local at = #stops + 1
  guard.s = stops
  while at > 1 and precedes(stop, stops[at - 1]) do at = at - 1 end
  if at > MOST_STOPS then return end
  table.insert(stops, at, stop)
  stops[MOST_STOPS + 1] = nil
  guard.i = stops[#stops][1]
end

local function learn_decision(batch, guard, numbers, generation)
  local sequence, _, is_stop, is_unreliable, is_warning, ordinal, ms, is_unwarned = unpack(numbers)
  if sequence < 0 then sequence = ms else is_unwarned = nil end
  if is_warning == 1 then keep_warning(guard, sequence, ordinal) end
  if is_stop == 1 then
    keep_stop(guard, { sequence, ordinal, generation, batch.is_trusted and 1 or 0, is_unwarned })
  end
  if is_unreliable == 1 then
    guard.n = lowest(guard.n, sequence)
    if batch.is_trusted then guard.nt = lowest(guard.nt, sequence) end
    if not guard.u then note(batch, cell_name(batch, guard.c), 'unreliable_prompts', 1) end
    guard.u = 1
  end
end

-- The sequence up to which every decision is known, so that no missing one could have been a warning.
local function gapless_upto(prompt)
  local runs = prompt.q
  return not prompt.r and runs[1] and runs[1] <= 1 and runs[2] or -1
end

-- An ordinal of -1 was not reported: such a warning or stop may be of any candidate.
local function is_warned(guard, warned, sequence, ordinal)
  if not guard.a or guard.a >= sequence then return false end
  return ordinal == -1 or lowest(warned[-1], warned[ordinal] or MOST) < sequence
end

-- Severity of a violation: COUNTED, from an untrusted producer; RECORDED, from a host that numbers nothing, so that
-- a lost record may explain it; LATCHING. After a decision only a violation of higher severity is decided.
local COUNTED, RECORDED, LATCHING = 1, 2, 3

local function worth_of(is_trusted, is_unnumbered)
  if not is_trusted then return COUNTED end
  return is_unnumbered and RECORDED or LATCHING
end

local function violate(found, prompt, name, invariant, worth, generation)
  local key = name .. ':' .. invariant
  local held = math.max(prompt.z and prompt.z[key] or 0, found[key] and found[key].worth or 0)
  if worth <= held then return end
  found[key] = { guard = name, invariant = invariant, worth = worth, generation = generation }
end

-- The undecided violations of delayed invariants, by the known records of a prompt.
local function violations_of(prompt)
  local found, known = {}, gapless_upto(prompt)
  for name, guard in pairs(prompt.g) do
    if guard.v then
      local worth = worth_of(guard.y ~= nil, prompt.u)
      violate(found, prompt, name, SWITCHED_TREATMENT, worth, guard.y or 0)
    end
    local stops, warned = unpacked(guard.s), unpacked(guard.s and guard.h)
    for _, stop in ipairs(stops) do
      local sequence, ordinal, generation, told_by, is_unwarned = unpack(stop)
      local is_trusted, is_unnumbered = told_by == 1, is_unwarned ~= nil
      local is_certain = is_unwarned == 1 or not is_unwarned and sequence <= known
      if is_certain and not guard.o and not is_warned(guard, warned, sequence, ordinal) then
        local worth = worth_of(is_trusted, is_unnumbered)
        violate(found, prompt, name, STOP_WITHOUT_WARN, worth, generation)
      end
      if guard.n and guard.n < sequence then
        local both = is_trusted and guard.nt ~= nil and guard.nt < sequence
        local worth = worth_of(both, is_unnumbered)
        violate(found, prompt, name, ENFORCED_ON_UNRELIABLE, worth, generation)
      end
    end
  end
  return found
end

local function judge(prompt)
  prompt.j = next(violations_of(prompt)) and 1 or nil
end

-- Whether the change of the sequence up to which all decisions are known matters for a stop.
local function is_stop_beyond(prompt, before, after)
  if before == after then return false end
  for _, guard in pairs(prompt.g) do
    if guard.i and (after < before or guard.i > before) then return true end
  end
  return false
end

-- Apply an event. It shares the attributes in `like`; suffix, second, day and numbers are per event.
local function learn(batch, prompt, event)
  local like, day, second, numbers = event.like, event.day, event.second, event.numbers
  local kind, guards = like.kind, like.guards
  for at = 1, #guards do place(batch, prompt, guards[at], second, like.generation) end
  if kind == 's' then
    prompt.s = earliest(prompt.s, { second, day, numbers[1], like.conforming })
  elseif kind == 'e' then
    local told = { second, day, unpack(numbers) }
    told[#told + 1] = like.conforming
    prompt.e = earliest(prompt.e, told)
  elseif kind == 'd' then
    local told = inner(prompt, 'x')
    told[numbers[1]] = earliest(told[numbers[1]], { second, day, like.conforming })
  elseif kind == 'p' then
    if batch.is_trusted then prompt.u, batch.unjudged[prompt] = 1, true end
    learn_part(batch, prompt, event)
  elseif kind == 'l' then
    add(prompt.g[guards[1].name], 'l', 1)
  else
    local guard = prompt.g[guards[1].name]
    if numbers[1] >= 0 then
      local before = gapless_upto(prompt)
      number(prompt, numbers[1])
      if is_stop_beyond(prompt, before, gapless_upto(prompt)) then batch.unjudged[prompt] = true end
    else
      if batch.is_trusted then prompt.u, batch.unjudged[prompt] = 1, true end
      if numbers[2] == 1 then
        local parts = inner(prompt, 'h')
        parts.w = lowest(parts.w, numbers[7])
      end
    end
    guard.w = guard.w + numbers[2]
    guard.p = guard.p + numbers[3]
    if numbers[3] + numbers[4] + numbers[5] > 0 then
      learn_decision(batch, guard, numbers, like.generation)
      batch.unjudged[prompt] = true
    end
  end
  if prompt.s or ending(prompt) then
    prompt.f = nil
  elseif not prompt.f or day < prompt.f then
    prompt.f = day
  end
end

local function is_open(prompt)
  return prompt.s and not ending(prompt) and not prompt.l
end

-- Covered: a start, an end, and as many transitions as the end reports, numbered from 1 without a
-- gap or a repetition.
local function is_covered(prompt, reported)
  if reported == IN_PARTS then return is_told_whole(prompt) end
  if prompt.r or not (prompt.s and prompt.e) then return false end
  if reported == 0 then return #prompt.q == 0 end
  return #prompt.q == 2 and prompt.q[1] == 1 and prompt.q[2] == reported
end

-- The change of an owner-day row. The scale of its buckets is `coarser` below 7.
local function change_of(batch, cell, day, owner)
  local owners = inner(inner(inner(batch.rows, cell), day), owner.b)
  local change = owners[owner.p]
  if not change then change = { sums = {}, buckets = {}, coarser = 0 }; owners[owner.p] = change end
  return change
end

local function count_record(batch, told, sign)
  local sums = inner(batch.days, told[2])
  add(sums, 'records', sign)
  add(sums, 'conforming', sign * told[#told])
end

-- A record about several guards comes as one event for each, and its copies may name other guards: for
-- the contract a prompt has one start, one end and one disruption of a kind.
local function count_records(batch, prompt, ended, sign)
  if prompt.s then count_record(batch, prompt.s, sign) end
  if ended then count_record(batch, ended, sign) end
  for _, told in pairs(prompt.x or {}) do count_record(batch, told, sign) end
end

-- The name of the day's sum of prompts reported with the version of a cell.
local function told_sum(batch, cell)
  local found = batch.told[cell] or 'told:' .. version_of(batch, cell_name(batch, cell))
  batch.told[cell] = found
  return found
end

-- The same for the version reported by trusted producers, the first by name of several; nil when none did.
local function trusted_sum(batch, prompt)
  local found
  for _, guard in pairs(prompt.g) do
    local told = guard.k and told_sum(batch, guard.c)
    if told and (not found or told < found) then found = told end
  end
  return found
end

-- Add a reported value to its sum; if it is missing (-1), count the prompt as one without the value.
local function add_told(sums, field, told, sign)
  if told < 0 then add(sums, UNTOLD[field], sign) else add(sums, field, sign * told) end
end

-- Add a prompt to the sums; with the sign -1 subtract it. A prompt counts on the day of its start, if that is
-- known; an end without a start counts as started.
local function count(batch, prompt, sign)
  local ended = ending(prompt)
  count_records(batch, prompt, ended, sign)
  local _, day, outcome, tokens, turns, bucket, reported, calls, hour
  if ended then _, day, outcome, tokens, turns, bucket, reported, calls, hour = unpack(ended) end
  if prompt.s then _, day, hour = unpack(prompt.s) end
  for _, guard in pairs(prompt.g) do
    -- Counted before the prompt has a day: a host that switches may never report a start or an end.
    if guard.v then add(change_of(batch, guard.c, day or prompt.f, prompt).sums, SWITCHED, sign) end
  end
  if not day then return end
  local covered = is_covered(prompt, reported)
  for _, guard in pairs(prompt.g) do
    local change = change_of(batch, guard.c, day, prompt)
    local sums = change.sums
    add(sums, STARTED, sign)
    add(sums, WOULD_STOPPED, sign * guard.w)
    add(sums, STOPPED, sign * guard.p)
    if guard.l then add(sums, LOOPS, sign * guard.l) end
    if guard.u then add(sums, UNRELIABLE, sign) end
    if prompt.x or prompt.h and prompt.h.o then add(sums, DISRUPTED, sign) end
    if covered then add(sums, COVERED, sign) end
    if ended then
      add(sums, outcome, sign)
      add(sums, ENDED, sign)
      add_told(sums, TOKENS, tokens, sign)
      add_told(sums, TURNS, turns, sign)
      add(sums, CALLS_AFTER, sign * calls)
      if bucket then add(change.buckets, bucket, sign) end
    elseif prompt.l then
      add(sums, LOST, sign)
    end
  end
  local sums = inner(batch.days, day)
  add(sums, 'h' .. hour, sign)
  if ended then add(sums, 'ended', sign) end
  -- Such a host also counts the calls: without its counter nothing shows that a record is missing.
  if reported == IN_PARTS and prompt.h.c then add(sums, 'called', sign) end
  local told = trusted_sum(batch, prompt)
  if told then add(sums, told, sign) end
  if covered then add(sums, 'covered', sign) end
end
