-- shut: closes the gate of a sale that is about to be built again, and has every load refused of an epoch that MySQL had
-- begun by then: whoever is still on the way with one must not open the gate in the middle of the rebuild. The fence
-- stands where Redis knows nothing else of the sale, too.
--
-- KEYS  1 sale (hash)
-- ARGV  1 the epoch that MySQL has
-- Returns 1.
local has = redis.call('HMGET', KEYS[1], 'epoch', 'fence')
if tonumber(has[2] or 0) < tonumber(ARGV[1]) then redis.call('HSET', KEYS[1], 'fence', ARGV[1]) end
if has[1] then redis.call('HSET', KEYS[1], 'gate', GATE_SHUT) end
return 1
