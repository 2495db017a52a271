-- retire: deletes a sale that is over. MySQL has all of it.
--
-- KEYS  1 sale (hash)   2 buyers (hash)   3 pending (hash)   4 moves (set)   5 outbox (stream)
--       6 blocks (hash)
-- ARGV  1 the epoch that MySQL retired
-- Returns 1 deleted, 0 where Redis has another epoch, or pending orders or outbox entries.
local sale, pending, outbox = KEYS[1], KEYS[3], KEYS[5]
if redis.call('HGET', sale, 'epoch') ~= ARGV[1] then return 0 end
if redis.call('EXISTS', pending) == 1 or redis.call('XLEN', outbox) > 0 then return 0 end
redis.call('UNLINK', unpack(KEYS))
return 1
