-- retire: deletes keys of a sale that is over. MySQL has all of it. It deletes nothing of a sale
-- that a merchant has changed since, or that was built again: it goes on.
--
-- KEYS  1 sale (hash)   2 pending (hash)   3 outbox (stream)   4… the keys to delete
-- ARGV  1 the epoch that MySQL retired   2 version of the row
-- Returns 1 deleted, or nothing is there; 0 where Redis has another epoch or a newer version of the
--       sale, or pending orders or outbox entries.
local sale, pending, outbox = KEYS[1], KEYS[2], KEYS[3]
local has = redis.call('HMGET', sale, 'epoch', 'version')
if has[1] and has[1] ~= ARGV[1] or tonumber(has[2] or 0) > tonumber(ARGV[2]) then return 0 end
if redis.call('EXISTS', pending) == 1 or redis.call('XLEN', outbox) > 0 then return 0 end
redis.call('UNLINK', unpack(KEYS, 4))
return 1
