-- update: sets fields of a sale that is loaded with the given epoch. It never creates a sale.
--
-- KEYS  1 sale (hash)
-- ARGV  1 epoch (0 = any)   2… field, value, …
-- Returns 1 set, 0 where Redis does not have that epoch.
local epoch = redis.call('HGET', KEYS[1], 'epoch')
if not epoch or (ARGV[1] ~= '0' and epoch ~= ARGV[1]) then return 0 end
redis.call('HSET', KEYS[1], unpack(ARGV, 2))
return 1
