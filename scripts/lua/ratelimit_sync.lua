-- ratelimit_sync: registers one node, and reads what operators have changed.
--
-- KEYS[1]   nodes: a sorted set of node ids by when they were last seen, s
-- KEYS[2]   version: a number that every change of the overrides raises
-- KEYS[3]   overrides: a hash from rule and key to a limit in JSON
--           (the three keys share a hash tag)
-- ARGV[1]   this node's id
-- ARGV[2]   the version that it knows, 0 for none
-- ARGV[3]   seconds after which a node that was not seen is removed
-- Returns   the number of nodes, the version (0: there is none), and, if it is
--           newer than the known one, the hash's fields and values alternately

local nodes, version_key, overrides = KEYS[1], KEYS[2], KEYS[3]
local node, known, node_ttl = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])

local now = tonumber(redis.call('TIME')[1])
redis.call('ZADD', nodes, now, node)
redis.call('ZREMRANGEBYSCORE', nodes, '-inf', now - node_ttl)
redis.call('ZREMRANGEBYSCORE', nodes, now + node_ttl + 1, '+inf') -- seen before a step back
redis.call('EXPIRE', nodes, node_ttl * 2)

local version = tonumber(redis.call('GET', version_key) or 0)
local answer = { redis.call('ZCARD', nodes), version }
if version > known then
  local fields = redis.call('HGETALL', overrides)
  for i = 1, #fields do answer[#answer + 1] = fields[i] end
end
return answer
