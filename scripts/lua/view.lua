-- view: reads one sale, every number from the same moment.
--
-- KEYS  1 sale (hash)   2 outbox (stream)
-- ARGV  1 lease ('' = read INFO)
-- Returns {gate, epoch, now ms, card, status, start, end, limit, total, avail, pend, sold, since,
--        entries in the outbox, id of its oldest ('' = none), lease, until (0 = for good)}; the
--        first three only where the gate is 1 (missing).
local sale, outbox = KEYS[1], KEYS[2]
local s = redis.call('HMGET', sale, 'gate', 'epoch', 'lease', 'from', 'until', 'card', 'status',
  'start', 'end', 'limit', 'total', 'avail', 'pend', 'sold', 'since')
local now = now_ms()
local gate, epoch = gate_of(s, ARGV[1])
if gate == GATE_MISSING then
  current_lease(ARGV[1]) -- fails where INFO is forbidden: no epoch could be loaded
  return {gate, epoch, now}
end
local first = redis.call('XRANGE', outbox, '-', '+', 'COUNT', 1)
local oldest = ''
if first[1] then oldest = first[1][1] end
local function num(i) return tonumber(s[i] or 0) end
return {gate, epoch, now, s[6], s[7], num(8), num(9), num(10), num(11), num(12), num(13), num(14),
  num(15), redis.call('XLEN', outbox), oldest, s[3], num(5)}
