-- ratelimit_sync: one node's look at what all nodes share: who is alive, and
-- what operators have set.
--
-- KEYS[1]   nodes: a sorted set of node ids by when they were last seen, s
-- KEYS[2]   version: a counter, raised by every change of the overrides
-- KEYS[3]   overrides: a hash of rule and key to a limit in JSON
--           (the three share a hash tag)
-- ARGV[1]   this node's id
-- ARGV[2]   the version that it has, 0 for none
-- ARGV[3]   seconds after which a node that is not seen is gone
-- Returns   the number of nodes, the version (0: there is none), and, if it is
--           not the one the node has, the hash' fields and values in turn

local nodes, version_key, overrides = KEYS[1], KEYS[2], KEYS[3]
local node, known, gone_after = ARGV[1], ARGV[2], tonumber(ARGV[3])

local now = tonumber(redis.call('TIME')[1])
redis.call('ZADD', nodes, now, node)
redis.call('ZREMRANGEBYSCORE', nodes, '-inf', now - gone_after)
redis.call('EXPIRE', nodes, gone_after * 2)

local version = redis.call('GET', version_key) or '0'
local answer = { redis.call('ZCARD', nodes), tonumber(version) }
if version ~= known then
  local fields = redis.call('HGETALL', overrides)
  for i = 1, #fields do answer[#answer + 1] = fields[i] end
end
return answer
