#!lua name=guardwave_control
-- Control functions: the atomic writes of the control plane. Every function computes first and
-- writes last, so that an error of its own leaves nothing half-written. Keys that are not in KEYS
-- share the slot of KEYS[1].

local KEEP_EVIDENCE_S = 120 * 86400

-- Whether this commit was applied before and its reply was lost. It reads only the newest entries,
-- because a call is repeated at once or never.
local function was_committed(audit, head, nonce)
  for _, entry in ipairs(redis.call('XREVRANGE', audit, '+', '-', 'COUNT', 32)) do
    local fields = entry[2]
    if fields[4] == head and fields[6] == nonce then return 1 end
  end
  return 0
end

-- gw_commit: one change of an environment's control state.
-- KEYS[1] state hash, KEYS[2] audit stream, KEYS[3..] keys to write.
-- ARGV: expected head, new head, environment JSON, audit entry JSON, nonce, operations JSON
-- [["SET", key index] | ["HSET", key index, field], ...], then one value for each operation.
-- Returns 1 when applied, now or by an earlier try, 0 when the audit chain has another head.
local function commit(keys, argv)
  local held = redis.call('HGET', keys[1], 'head') or ''
  if held ~= argv[1] then return was_committed(keys[2], argv[2], argv[5]) end
  local operations = cjson.decode(argv[6])
  if #operations ~= #argv - 6 then return redis.error_reply('gw_commit: a value per operation') end
  redis.call('HSET', keys[1], 'head', argv[2], 'environment', argv[3])
  redis.call('HINCRBY', keys[1], 'revision', 1)
  redis.call('XADD', keys[2], '*', 'entry', argv[4], 'hash', argv[2], 'nonce', argv[5])
  for at, operation in ipairs(operations) do
    local value = argv[6 + at]
    if operation[1] == 'SET' then
      redis.call('SET', keys[operation[2]], value)
    else
      redis.call('HSET', keys[operation[2]], operation[3], value)
    end
  end
  return 1
end

-- gw_lease: take or renew an environment's lease. KEYS[1] lease hash. ARGV: holder, milliseconds.
-- Returns the fence, a number that grows with each new holder, or 0 when another holder has it.
local function lease(keys, argv)
  local holder = redis.call('HGET', keys[1], 'holder')
  local fence = keys[1] .. ':fence'
  if holder and holder ~= argv[1] then return 0 end
  local number = tonumber(redis.call('HGET', keys[1], 'fence'))
  if not holder then number = redis.call('INCR', fence) end
  redis.call('HSET', keys[1], 'holder', argv[1], 'fence', number)
  redis.call('PEXPIRE', keys[1], argv[2])
  return number
end

-- gw_finish: store a result once. KEYS[1] evaluation hash, KEYS[2] lease hash, KEYS[3] its bundle.
-- ARGV: fence, value, bundle or ''. Returns 1 when stored, now or by an earlier try; 0 when another
-- value is stored or the lease was lost.
local function finish(keys, argv)
  local done = redis.call('HGET', keys[1], 'done')
  if done then return done == argv[2] and 1 or 0 end
  if redis.call('HGET', keys[2], 'fence') ~= argv[1] then return 0 end
  if argv[3] ~= '' then redis.call('SET', keys[3], argv[3]) end
  redis.call('HSET', keys[1], 'done', argv[2])
  return 1
end

-- gw_facts: state facts of owners. KEYS[1] facts hash, KEYS[2] changes zset, KEYS[3] its counter.
-- ARGV: pseudonym, facts, pseudonym, facts, ... Returns how many owners changed.
local function facts(keys, argv)
  local changed = 0
  for at = 1, #argv, 2 do
    if redis.call('HGET', keys[1], argv[at]) ~= argv[at + 1] then
      redis.call('HSET', keys[1], argv[at], argv[at + 1])
      redis.call('ZADD', keys[2], redis.call('INCR', keys[3]), argv[at])
      changed = changed + 1
    end
  end
  return changed
end

-- gw_seal: seal a day once. KEYS[1] day hash, KEYS[2] set of days.
-- ARGV: day, sealed at, longest outage in seconds or ''. Returns 1 when sealed now.
local function seal(keys, argv)
  if redis.call('HSETNX', keys[1], 'sealed_at', argv[2]) == 0 then return 0 end
  redis.call('HSET', keys[1], 'outage', argv[3])
  redis.call('HINCRBY', keys[1], 'revision', 1)
  redis.call('EXPIRE', keys[1], KEEP_EVIDENCE_S)
  redis.call('SADD', keys[2], argv[1])
  return 1
end

-- A full store rejects evidence; it must not reject a rollback or a latch.
redis.register_function{function_name='gw_commit', callback=commit, flags={'allow-oom'}}
redis.register_function('gw_lease', lease)
redis.register_function('gw_finish', finish)
redis.register_function('gw_facts', facts)
redis.register_function('gw_seal', seal)
