-- Sessions: a prompt is disrupted if its session is opened again within ten minutes of the prompt's end.
-- The state of a session: o: the milliseconds at which it was opened, e: those at which its prompts ended, d: its
-- disrupted prompts.

local SOON_MS = 600 * 1000
local MOST_OPENED, MOST_ENDED = 32, 64

local function take_back(batch, suffix, prompt)
  if batch.changed[suffix] then return end
  batch.changed[suffix] = prompt
  batch.was_open[prompt] = is_open(prompt)
  if next(prompt.g) then count(batch, prompt, -1) end
end

local function open_session(batch, event)
  local opened, ms = session_of(batch, event[4]).o, event[11][1]
  for _, each in ipairs(opened) do
    if each == ms then return end
  end
  opened[#opened + 1] = ms
  table.sort(opened)
  if #opened > MOST_OPENED then table.remove(opened, 1) end
end

-- The prompts of a session by their ends, the newest first; the oldest beyond the bound are forgotten.
local function newest_ends(session)
  local order = {}
  for suffix, ms in pairs(session.e) do order[#order + 1] = { ms, suffix } end
  table.sort(order, function(a, b) return precedes(b, a) end)
  for at = #order, MOST_ENDED + 1, -1 do
    session.e[order[at][2]] = nil
    order[at] = nil
  end
  return order
end

local function disrupted_in(session)
  local disrupted, ends = {}, newest_ends(session)
  for _, opened in ipairs(session.o) do
    for _, ended in ipairs(ends) do
      if ended[1] < opened then
        if opened - ended[1] <= SOON_MS then disrupted[ended[2]] = 1 end
        break
      end
    end
  end
  return disrupted
end

local function mark_disrupted(batch, suffix, mark)
  local prompt = prompt_of(batch, suffix)
  if not prompt then return end
  take_back(batch, suffix, prompt)
  prompt.h.o = mark
end

-- Decide again which prompts were disrupted, in every session that the call changed.
local function settle_sessions(batch)
  for suffix, prompt in pairs(batch.changed) do
    local session, ms = ended_in(prompt)
    if session then session_of(batch, session).e[suffix] = ms end
  end
  -- A prompt may turn out to be of another session: it leaves one before it is marked by the other.
  local marked = {}
  for _, session in pairs(batch.sessions) do
    local before, after = session.d, disrupted_in(session)
    for suffix in pairs(before) do
      if not after[suffix] then mark_disrupted(batch, suffix, nil) end
    end
    for suffix in pairs(after) do
      if not before[suffix] then marked[#marked + 1] = suffix end
    end
    session.d = after
  end
  for _, suffix in ipairs(marked) do mark_disrupted(batch, suffix, 1) end
end

local function write_sessions(batch)
  for suffix, session in pairs(batch.sessions) do
    redis.call('SET', 'se:' .. batch.slot .. ':' .. suffix, cmsgpack.pack(session), 'EX', KEEP_SEEN_S)
  end
end
