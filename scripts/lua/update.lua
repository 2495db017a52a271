-- update: sets fields of a sale that is loaded with the given epoch, unless Redis has those of a
-- newer version of MySQL's row. Where Redis has another epoch or none, it keeps only the version: a
-- load that was read before this change is then refused.
--
-- KEYS  1 sale (hash)
-- ARGV  1 epoch   2 version of the row   3… field, value, …
-- Returns 1 where Redis has this version or a newer one, 0 where it does not have that epoch.
local sale = KEYS[1]
local has = redis.call('HMGET', sale, 'epoch', 'version')
local older = tonumber(ARGV[2]) < tonumber(has[2] or 0)
if not older then redis.call('HSET', sale, 'version', ARGV[2]) end
if has[1] ~= ARGV[1] then return 0 end
if not older then redis.call('HSET', sale, unpack(ARGV, 3)) end
return 1
