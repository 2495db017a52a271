-- ratelimit_restore: writes the overrides that a node knows into a Redis that lost them.
--
-- KEYS[1]   version: a number that every change of the overrides raises
-- KEYS[2]   overrides: a hash from rule and key to a limit in JSON
--           (the keys share a hash tag)
-- ARGV[1]   the version that the node knows
-- ARGV[2]…  the hash's fields and values alternately, as they were with this version
-- Returns   1 if they are written, 0 if Redis has this version or a newer one

local version_key, overrides, version = KEYS[1], KEYS[2], ARGV[1]

if tonumber(redis.call('GET', version_key) or 0) >= tonumber(version) then return 0 end
redis.call('DEL', overrides)
for i = 2, #ARGV, 2 do redis.call('HSET', overrides, ARGV[i], ARGV[i + 1]) end
redis.call('SET', version_key, version)
return 1
