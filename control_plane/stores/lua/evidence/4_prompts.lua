-- Events of prompts, grouped by prompt: each prompt is read once, and attributes shared by many events are sent,
-- looked up and counted once.
--
-- `likes` is a list of shared attributes [kind, [[guard, cell name, treatment], ...], conforming 0/1 or -1 for no
-- record, numbers, health fields that an event raises by one when it is new, generation of the assignment id].
-- `prompts` is flat, since a table in it would cost more than all its contents:
-- for each prompt (HEAD) suffix, pseudonym, owner bucket, the places in `likes` of its events (PLACE bytes each,
-- from 1) and their tokens (TOKEN bytes each, of identity and minute); then for each of its events (STRIDE) the
-- second, the number of the day from 1970, and its numbers, false if they are in the shared attributes.
--
-- kind s(tart), e(nd), t(ransition: numbers are sequence or -1, would stop, stop, unreliable input, warning,
-- ordinal or -1, and without a sequence the millisecond and whether the stop's record says that no warning came),
-- d(isruption), p(art: 1_parts.lua), l(oop of another guard than the one named).

local HEAD, STRIDE, PLACE = 5, 3, 2

local function days_of_year(year)
  local is_leap = year % 4 == 0 and (year % 100 ~= 0 or year % 400 == 0)
  return is_leap and 366 or 365
end

local DAYS_OF_MONTHS = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 }

-- The day of this number from 1970, in ISO 8601.
local function iso_day(batch, number)
  if batch.iso_days[number] then return batch.iso_days[number] end
  local year, month, left = 1970, 1, number
  while left < 0 do year, left = year - 1, left + days_of_year(year - 1) end
  while left >= days_of_year(year) do year, left = year + 1, left - days_of_year(year) end
  local february = days_of_year(year) - 337
  local function days_of_month() return month == 2 and february or DAYS_OF_MONTHS[month] end
  while left >= days_of_month() do left, month = left - days_of_month(), month + 1 end
  batch.iso_days[number] = string.format('%04d-%02d-%02d', year, month, left + 1)
  return batch.iso_days[number]
end

local function count_version(batch, version, field, by)
  add(inner(batch.sources, version), field, by)
end

local function count_treated(batch, guard, treatment, generation, by)
  local mode = treatment:match('|(%w+)$')
  if mode == 'warn' or mode == 'enforce' then
    add(batch.treated, table.concat({ guard, mode, generation }, '|'), by)
  end
end

-- The working form of shared attributes. Their cells are looked up when the first new event comes.
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

-- Transitions are the records that are counted one by one: 2_prompts.lua counts the others.
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

-- Apply the events of the prompt at this place; returns the place of the next prompt.
local function take_prompt(batch, payload, from)
  local told, likes = payload.prompts, batch.likes
  local suffix, pseudonym, bucket, places, tokens = unpack(told, from, from + HEAD - 1)
  local prompt = batch.prompts[suffix] or { p = pseudonym, b = bucket, q = {}, g = {} }
  local event, at = { suffix = suffix }, from + HEAD
  batch.prompts[suffix] = prompt
  for nth = 1, #places / PLACE do
    local high, low = places:byte(nth * PLACE - 1, nth * PLACE)
    local place = high * 256 + low
    local like = likes[place] or like_of(payload.likes[place])
    likes[place] = like
    if is_new(batch, prompt, suffix, tokens:sub((nth - 1) * TOKEN + 1, nth * TOKEN)) then
      event.like, event.second, event.day = like, told[at], iso_day(batch, told[at + 1])
      event.numbers = told[at + 2] or like.numbers
      take_event(batch, prompt, event)
    else
      like.known = like.known + 1
    end
    at = at + STRIDE
  end
  return at
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

-- Read the state of all prompts of the call, with few commands.
local function read_prompts(batch, told)
  local keys, suffixes, at = {}, {}, 1
  while told[at] do
    suffixes[#suffixes + 1] = told[at]
    keys[#keys + 1] = 'ps:' .. batch.slot .. ':' .. told[at]
    at = at + HEAD + #told[at + 3] / PLACE * STRIDE
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
