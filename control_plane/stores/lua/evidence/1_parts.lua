-- Prompt parts: prompts of a host that reports them in parts, in any order, and has no record of how they ended.
-- The outcome of such a prompt is a function of its known parts.
--
-- The parts h of a prompt: m: the millisecond of its start, v when another start reported the same prompt; t: tokens
-- and n: turns of the model's answers, k when an answer did not report its tokens, r: failed requests,
-- l: how a protection ended it (second, outcome), f(inished: millisecond, second, day, hour, turns),
-- i: the span of the whole (the same up to the hour, outcome, bucket), z: its session, c: the milliseconds of its
-- tool calls, w: that of its first decision that would have stopped it, o when its session was opened again soon
-- after it ended.

local COMPLETED, FAILED, CANCELLED = 3, 4, 2
-- In place of the number of transitions in an end: this host numbers none.
local IN_PARTS = -2
-- A prompt with more tool calls keeps the first ones.
local MOST_CALLS = 512
local BUCKETS_PER_DOUBLING = 128

local function sooner(held, new)
  return held and math.min(held, new) or new
end

local PARTS = {
  began = function(parts, _, ms)
    if parts.m and parts.m ~= ms then parts.v = 1 end
    parts.m = sooner(parts.m, ms)
  end,
  answered = function(parts, _, tokens, turns)
    if tokens < 0 then parts.k = 1 else add(parts, 't', tokens) end
    add(parts, 'n', turns)
  end,
  failed = function(parts) add(parts, 'r', 1) end,
  called = function(parts, _, ms)
    local calls = inner(parts, 'c')
    calls[#calls + 1] = ms
    table.sort(calls)
    calls[MOST_CALLS + 1] = nil
  end,
  stopped = function(parts, event, outcome)
    parts.l = earliest(parts.l, { event.second, outcome })
  end,
  finished = function(parts, event, ms, hour, turns)
    parts.f = earliest(parts.f, { ms, event.second, event.day, hour, turns })
  end,
  closed = function(parts, event, ms, hour, outcome, bucket)
    parts.i = earliest(parts.i, { ms, event.second, event.day, hour, outcome, bucket })
  end,
}

local function session_of(batch, suffix)
  local found = batch.sessions[suffix]
  if not found then
    local held = redis.call('GET', 'se:' .. batch.slot .. ':' .. suffix)
    found = held and cmsgpack.unpack(held) or { o = {}, e = {}, d = {} }
    batch.sessions[suffix] = found
  end
  return found
end

local function learn_part(batch, prompt, event)
  local told, parts = event.numbers, inner(prompt, 'h')
  PARTS[told[1]](parts, event, unpack(told, 2))
  local session = (told[1] == 'finished' or told[1] == 'closed') and told[#told] or ''
  if session == '' or parts.z and parts.z <= session then return end
  if parts.z then session_of(batch, parts.z).e[event.suffix] = nil end
  parts.z = session
end

-- The bucket at scale 7 of milliseconds, the form of durations that a host reports.
local function bucket_of(ms)
  local part, doublings = math.frexp(math.max(ms, 1))
  local exact = doublings + math.log(part) / math.log(2)
  return math.ceil(exact * BUCKETS_PER_DOUBLING) - 1
end

-- A request without an answer ended the prompt: as failed if a request failed, else its user cancelled.
local function outcome_of(parts)
  local span = parts.i
  if span and span[5] ~= FAILED then return span[5] end
  if parts.l then return parts.l[2] end
  if span then return FAILED end
  if parts.f[5] <= (parts.n or 0) then return COMPLETED end
  return parts.r and FAILED or CANCELLED
end

local function calls_after(parts)
  local after = 0
  for _, ms in ipairs(parts.w and parts.c or {}) do
    if ms > parts.w then after = after + 1 end
  end
  return after
end

-- Whether every request but the one in which the prompt ended has a known answer.
local function is_answered(parts)
  local outcome = outcome_of(parts)
  local unanswered = (outcome == FAILED or outcome == CANCELLED) and 1 or 0
  return parts.f and parts.f[5] - (parts.n or 0) <= unanswered
end

-- How a prompt ended, in the form of an end; nil while that is not known. The span is the best source. -1 stands
-- for unknown tokens or turns: values of only some of the answers are no sum.
local function ending(prompt)
  local parts = prompt.h
  if prompt.e or not parts then return prompt.e end
  local finished, span = parts.f, parts.i
  local bounds = span or finished
  if not bounds then return nil end
  local bucket = span and span[6] or not span and parts.m and bucket_of(finished[1] - parts.m) or false
  local turns = finished and finished[5] or -1
  local tokens = not parts.k and is_answered(parts) and math.min(parts.t or 0, MOST) or -1
  local is_conforming = finished and bucket and not parts.k and 1 or 0
  return {
    bounds[2], bounds[3], outcome_of(parts), tokens, turns, bucket, IN_PARTS, calls_after(parts),
    bounds[4], is_conforming,
  }
end

-- Whether nothing of the prompt is missing, as far as its parts can show: it has its start, its end, and an answer
-- to every request but the one in which it ended.
local function is_told_whole(prompt)
  local parts = prompt.h
  if not parts or parts.v or not (prompt.s and parts.f) then return false end
  return is_answered(parts)
end

-- The session that a prompt ended in, and the millisecond of its end.
local function ended_in(prompt)
  local parts = prompt.h
  if not parts or not parts.z then return nil end
  return parts.z, (parts.i or parts.f)[1]
end
