-- roomset: sets fields of a room that still has the lease for which they were decided.
--
-- KEYS  1 room (hash, see room)
-- ARGV  1 lease   2… field, value, …: limit; seed; held (units that are written and not paid), back
--       (Unix ms at which the last of them can return) and over
-- Returns 1 set, 0 where the room has another lease.
local room = KEYS[1]
if redis.call('HGET', room, 'lease') ~= ARGV[1] then return 0 end
redis.call('HSET', room, unpack(ARGV, 2))
return 1
