-- Writes: what a call changes in the store, computed first and written last.

local function sum_of(held, by)
  return math.min((held or 0) + by, MOST)
end

local rows = {}

-- The number of places of a row before its histogram. Pairs follow, so the length shows whether the row has a
-- place for loop events. A row without one never gets it: uncounted is not zero.
function rows.head_of(row)
  return (#row == 0 or #row % 2 == SUMS % 2) and SUMS or COARSER
end

-- A histogram in a row: the first bucket and its count, then for each further bucket the distance from the one
-- before and its count. Neighbours are close, so most values take one byte.
function rows.histogram_of(row)
  local buckets, bucket = {}, 0
  for at = rows.head_of(row) + 1, #row, 2 do
    bucket = bucket + row[at]
    buckets[bucket] = row[at + 1]
  end
  return buckets
end

function rows.append_histogram(row, buckets)
  local order, last = {}, 0
  for bucket, prompts in pairs(buckets) do
    if prompts ~= 0 then order[#order + 1] = bucket end
  end
  table.sort(order)
  for _, bucket in ipairs(order) do
    row[#row + 1] = bucket - last
    row[#row + 1] = buckets[bucket]
    last = bucket
  end
end

-- Add to a bucket in the row's histogram, in place; a bucket without prompts is removed.
function rows.add_to_bucket(row, head, bucket, by)
  local at, last = head + 1, 0
  while row[at] and last + row[at] < bucket do
    last = last + row[at]
    at = at + 2
  end
  if row[at] ~= bucket - last then
    if row[at] then row[at] = row[at] - (bucket - last) end
    table.insert(row, at, by)
    table.insert(row, at, bucket - last)
    return
  end
  row[at + 1] = row[at + 1] + by
  if row[at + 1] ~= 0 then return end
  if row[at + 2] then row[at + 2] = row[at + 2] + row[at] end
  table.remove(row, at)
  table.remove(row, at)
end

-- Whether changes in place cost less than to rewrite the histogram.
function rows.is_few(buckets)
  local many = 0
  for _ in pairs(buckets) do many = many + 1 end
  return many <= 16
end

function rows.change_histogram(row, head, change)
  if change.coarser == row[COARSER] and rows.is_few(change.buckets) then
    for bucket, by in pairs(change.buckets) do
      if by ~= 0 then rows.add_to_bucket(row, head, bucket, by) end
    end
    return
  end
  local histogram = { buckets = rows.histogram_of(row), coarser = row[COARSER] }
  add_buckets(histogram, change.buckets, change.coarser, 1)
  row[COARSER] = histogram.coarser
  for at = #row, head + 1, -1 do row[at] = nil end
  rows.append_histogram(row, histogram.buckets)
end

rows.NEW = {}
for at = 1, SUMS do rows.NEW[at] = 0 end

function rows.is_empty(row, head)
  if #row > head then return false end
  for at = 1, head do
    if row[at] ~= 0 and at ~= COARSER then return false end
  end
  return true
end

-- An owner's row after the change: packed, false when no prompt is left in it, nil when the change
-- changes nothing.
function rows.changed(key, pseudonym, change)
  local differs = false
  for _, by in pairs(change.sums) do differs = differs or by ~= 0 end
  for _, by in pairs(change.buckets) do differs = differs or by ~= 0 end
  if not differs then return nil end
  local held = redis.call('HGET', key, pseudonym)
  local row = held and cmsgpack.unpack(held) or { unpack(rows.NEW) }
  local head = rows.head_of(row)
  for at, by in pairs(change.sums) do
    if at <= head then row[at] = sum_of(row[at], by) end
  end
  rows.change_histogram(row, head, change)
  return not rows.is_empty(row, head) and cmsgpack.pack(row)
end

-- A cell's counters of a day after the change: new counters beyond the bound become OTHER.
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

function rows.settle(batch, writes)
  for cell, days in pairs(batch.rows) do
    for day, buckets in pairs(days) do
      for bucket, owners in pairs(buckets) do
        local key = string.format('od:%s:%d:%s:%02x', batch.slot, cell, day, bucket)
        for pseudonym, change in pairs(owners) do
          local packed = rows.changed(key, pseudonym, change)
          if packed ~= nil then
            writes[#writes + 1] = { key, pseudonym, packed }
            batch.touched[day] = true
          end
        end
      end
    end
  end
end

-- The writes of rows and counters, and the days that change; this only reads.
local function settle(batch)
  local writes = {}
  rows.settle(batch, writes)
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
  local due, suspects = 'due:' .. batch.slot, 'iv:' .. batch.slot
  local open, closed = {}, {}
  for suffix, prompt in pairs(batch.changed) do
    if is_open(prompt) then
      open[#open + 1] = prompt.s[1] + LOST_AFTER_S
      open[#open + 1] = suffix
    elseif batch.was_open[prompt] then
      closed[#closed + 1] = suffix
    end
    local keep = ending(prompt) and KEEP_ENDED_S or KEEP_OPEN_S
    local was_suspect = prompt.j
    if batch.unjudged[prompt] then judge(prompt) end
    if prompt.j then
      -- Late records may still explain it; the prompt is kept until it is decided.
      redis.call('ZADD', suspects, 'NX', batch.now + DECIDED_AFTER_S, suffix)
      keep = KEEP_EVIDENCE_S
    elseif was_suspect then
      redis.call('ZREM', suspects, suffix)
    end
    redis.call('SET', 'ps:' .. batch.slot .. ':' .. suffix, packed(prompt), 'EX', keep)
  end
  call_with('ZADD', due, open)
  call_with('ZREM', due, closed)
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
  write_seen(batch)
  write_cells(batch)
  local keys = {}
  for _, each in ipairs(writes) do
    local key, field, value = unpack(each)
    if value then redis.call('HSET', key, field, value) else redis.call('HDEL', key, field) end
    keys[key] = true
  end
  for key in pairs(keys) do redis.call('EXPIRE', key, KEEP_EVIDENCE_S) end
  write_streams(batch)
  write_prompts(batch)
  write_sessions(batch)
  write_days(batch)
end

-- Count in a field of its own, or, beyond so many fields, in the shared one.
local function count_bounded(key, most, field, by, shared)
  if redis.call('HEXISTS', key, field) == 0 and redis.call('HLEN', key) >= most then field = shared end
  redis.call('HINCRBY', key, field, by)
  return field
end

-- Health of each version and producer: fields are [producer, version, counter] as JSON.
local function write_sources(batch, payload)
  local key, producer = 'hs:' .. batch.slot, payload.producer
  local function source(version, field) return cjson.encode({ producer, version, field }) end
  -- The name of a version: its own while there is room for one of its counters, else OTHER.
  local places = {}
  for _, counts in ipairs({ payload.sources, batch.sources }) do
    for version, fields in pairs(counts) do
      for field, by in pairs(fields) do
        if by ~= 0 then
          local name = source(version, field)
          local is_own = count_bounded(key, MOST_SOURCES, name, by, source(OTHER, field)) == name
          places[version] = is_own and version or places[version] or OTHER
        end
      end
    end
  end
  -- These times show which versions are not heard of any more and may be forgotten.
  for version, place in pairs(places) do
    local second = batch.newest[version]
    redis.call('HSET', key, source(place, second and 'last_record_s' or 'last_heard_s'), batch.now)
    if second then redis.call('HSET', key, source(place, 'ahead_s'), second - batch.now) end
  end
end

-- Records of prompts under assignment ids above shadow: their number, and the time of the last one.
local function write_treated(batch)
  local key = 'ti:' .. batch.slot
  for name, by in pairs(batch.treated) do
    local field = count_bounded(key, MOST_TREATED, name .. '|records', by, OTHER .. '|records')
    redis.call('HSET', key, field:gsub('records$', 'last'), batch.now)
  end
end

local function write_health(batch, payload, accepted, repeated)
  local health = 'hl:' .. batch.slot
  for _, counts in ipairs({ payload.health, batch.health }) do
    for field, by in pairs(counts) do redis.call('HINCRBY', health, field, by) end
  end
  redis.call('HINCRBY', health, 'accepted', accepted)
  redis.call('HINCRBY', health, 'duplicate', repeated)
  if payload.last > tonumber(redis.call('HGET', health, 'last_record_s') or '0') then
    redis.call('HSET', health, 'last_record_s', payload.last)
  end
  write_sources(batch, payload)
  write_treated(batch)
end
