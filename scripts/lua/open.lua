-- open: opens the gate of a loaded epoch until a moment, or renews it. The caller has checked that
-- MySQL permits this master to be open (see internal/order/rebuild). A gate that a rebuild has shut
-- stays shut. The moment only grows, because the call of a worker that slept may come late. It is
-- replaced in any case after Redis' clock was set back.
--
-- KEYS  1 sale (hash)
-- ARGV  1 lease ('' = read INFO)   2 epoch   3 from ms   4 until ms
-- Returns 1 open, 0 where the gate is shut, or Redis has another epoch, or not its lease.
local sale, from, till = KEYS[1], ARGV[3], ARGV[4]
local s = redis.call('HMGET', sale, 'gate', 'epoch', 'lease', 'from', 'until')
if s[2] ~= ARGV[2] or s[1] == SHUT or not leads(s[3], ARGV[1]) then return 0 end
local now = now_ms()
if not s[5] or tonumber(s[5]) < tonumber(till) or now < tonumber(s[4]) then
  redis.call('HSET', sale, 'gate', OPEN, 'from', from, 'until', till)
end
return 1
