-- shut: shuts the gate of a sale before a rebuild and sets the fence: every load of an epoch that
-- MySQL had begun by then is refused, so that a delayed load cannot open the gate during the
-- rebuild. It does so even where Redis has nothing of the sale, and changes nothing where Redis has
-- a newer epoch: another rebuild has ended while the caller slept.
--
-- KEYS  1 sale (hash)
-- ARGV  1 the newest epoch that MySQL or Redis had   2 lease ('' = read INFO)
-- Returns this master's lease; '' where Redis has a newer epoch.
local has = redis.call('HMGET', KEYS[1], 'epoch', 'fence')
if tonumber(has[1] or 0) > tonumber(ARGV[1]) then return '' end
redis.call('HSET', KEYS[1], 'gate', SHUT, 'fence', math.max(tonumber(has[2] or 0), ARGV[1]))
return current_lease(ARGV[2])
