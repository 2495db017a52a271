-- ratelimit_set: stores or removes an operator's limit, unless it has changed since it was read.
--
-- KEYS[1]   version: a number that every change of the overrides raises
-- KEYS[2]   overrides: a hash from rule and key to a limit in JSON
--           (the keys share a hash tag)
-- ARGV[1]   the version of the overrides that were read
-- ARGV[2]   field of the hash
-- ARGV[3]   its value as it was read, '' for none
-- ARGV[4]   its new value, '' removes it
-- Returns   1 if the value is stored, 0 if Redis has another value or an older version than that
--           which was read
--
-- The new version is Redis' time in microseconds, or the old version + 1 if that is more. So no
-- version repeats, even after a failover to a replica that lags. Nodes of older releases only
-- add 1.

local version_key, overrides = KEYS[1], KEYS[2]
local read, field, before, after = tonumber(ARGV[1]), ARGV[2], ARGV[3], ARGV[4]

local version = tonumber(redis.call('GET', version_key) or 0)
if version < read or (redis.call('HGET', overrides, field) or '') ~= before then return 0 end

if after == '' then
  redis.call('HDEL', overrides, field)
else
  redis.call('HSET', overrides, field, after)
end
local time = redis.call('TIME')
local next_version = math.max(time[1] * 1000000 + time[2], version + 1) -- exact below 2^53
redis.call('SET', version_key, string.format('%.0f', next_version))
return 1
