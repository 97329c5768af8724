-- The events of prompts that a call tells, by prompt: each prompt is read once, and what many events tell alike
-- is told once, found once and counted once.
--
-- `likes` is a list of [kind, [[guard, cell name, treatment], ...], conforming 0/1 or -1 for no record, numbers,
-- health fields that an event raises by one when it is new, generation of the assignment id]; `days` one of days
-- in ISO 8601. `prompts` is flat, since a table in it would cost more than all it holds: suffix, pseudonym, owner
-- bucket and number of events of each prompt (HEAD), and behind these of each of its events (STRIDE) the like,
-- the token (eight bytes of its identity and its minute), the second, the day, and its own numbers, false where
-- the like has them. Likes and days are told by their places, from 1.
--
-- kind s(tart), e(nd), t(ransition: numbers are sequence or -1, would stop, stop, unreliable input, warning,
-- ordinal or -1, and without a sequence the millisecond and whether the stop says that it was not warned of),
-- d(isruption), p(art: evidence_1_parts.lua), l(oop of another guard than the one named).

local HEAD, STRIDE = 4, 5

local function count_version(batch, version, field, by)
  add(inner(batch.sources, version), field, by)
end

local function count_treated(batch, guard, treatment, generation, by)
  local mode = treatment:match('|(%w+)$')
  if mode == 'warn' or mode == 'enforce' then
    add(batch.treated, table.concat({ guard, mode, generation }, '|'), by)
  end
end

-- A like as its events are learned and counted. Its cells are found when an event of it turns out to be new.
local function like_of(told)
  local like = {
    kind = told[1], conforming = told[3], numbers = told[4], health = told[5], generation = told[6],
    guards = {}, new = 0, known = 0, newest = 0,
  }
  for at, guard in ipairs(told[2]) do
    like.guards[at] = { name = guard[1], cell_name = guard[2], treatment = guard[3] }
  end
  return like
end

local function find_cells(batch, like)
  for _, guard in ipairs(like.guards) do guard.cell = cell_id(batch, guard.cell_name) end
end

-- Transitions are the records that are counted one by one: evidence_2_prompts.lua counts the others.
local function count_transition(batch, event)
  local sums, conforming = inner(batch.days, event.day), event.like.conforming
  if conforming < 0 then return end
  add(sums, 'records', 1)
  add(sums, 'conforming', conforming)
  if event.numbers[1] < 0 then add(sums, 'unnumbered', 1) end
end

local function take_event(batch, prompt, event)
  local like = event.like
  if not batch.changed[event.suffix] then take_back(batch, event.suffix, prompt) end
  if like.new == 0 then find_cells(batch, like) end
  like.new = like.new + 1
  if event.second > like.newest then like.newest = event.second end
  learn(batch, prompt, event)
  if like.kind == 't' then count_transition(batch, event) end
end

-- Take the events of the prompt that is told of from this place on; answer the place of the next one.
local function take_prompt(batch, payload, from)
  local told, likes = payload.prompts, batch.likes
  local suffix, pseudonym, bucket, many = unpack(told, from, from + HEAD - 1)
  local prompt = batch.prompts[suffix] or { p = pseudonym, b = bucket, q = {}, g = {} }
  local event, next_prompt = { suffix = suffix }, from + HEAD + many * STRIDE
  batch.prompts[suffix] = prompt
  for at = from + HEAD, next_prompt - 1, STRIDE do
    local place = told[at]
    local like = likes[place] or like_of(payload.likes[place])
    likes[place] = like
    if is_new(batch, prompt, suffix, told[at + 1]) then
      event.like, event.second, event.day = like, told[at + 2], payload.days[told[at + 3]]
      event.numbers = told[at + 4] or like.numbers
      take_event(batch, prompt, event)
    else
      like.known = like.known + 1
    end
  end
  return next_prompt
end

local function count_like(batch, like)
  local name = like.guards[1].cell_name
  local version = version_of(batch, name)
  batch.fresh, batch.repeated = batch.fresh + like.new, batch.repeated + like.known
  if like.known > 0 then count_version(batch, version, 'duplicate', like.known) end
  if like.new == 0 then return end
  count_version(batch, version, 'accepted', like.new)
  batch.newest[version] = math.max(batch.newest[version] or 0, like.newest)
  for _, guard in ipairs(like.guards) do
    count_treated(batch, guard.name, guard.treatment, like.generation, like.new)
  end
  for _, field in ipairs(like.health) do note(batch, name, field, like.new) end
end

-- Read at once what is known of the prompts that are told of.
local function read_prompts(batch, told)
  local keys, suffixes, at = {}, {}, 1
  while told[at] do
    suffixes[#suffixes + 1] = told[at]
    keys[#keys + 1] = 'ps:' .. batch.slot .. ':' .. told[at]
    at = at + HEAD + told[at + HEAD - 1] * STRIDE
  end
  for from = 1, #keys, AT_ONCE do
    local answer = redis.call('MGET', unpack(keys, from, math.min(from + AT_ONCE - 1, #keys)))
    for nth, held in ipairs(answer) do
      if held then batch.prompts[suffixes[from + nth - 1]] = cmsgpack.unpack(held) end
    end
  end
end

local function take_prompts(batch, payload)
  read_prompts(batch, payload.prompts)
  local at = 1
  while payload.prompts[at] do at = take_prompt(batch, payload, at) end
  for _, like in pairs(batch.likes) do count_like(batch, like) end
end
