-- paths: stores random paths of one goods for buyers while the sale accepts orders. A path is valid
-- in its epoch only: a Redis that lost its last second may have lost the use of a path.
--
-- KEYS  1 sale (hash)   2… the keys of the paths
-- ARGV  1 lease ('' = read INFO)   2 the caller's epoch   3 life of a path, ms
--       4… the buyer of each path
-- Returns {gate, epoch, now ms, units left, state}.
--       State: 0 stored, 3 too early, 4 too late, 6 no units left.
local sale = KEYS[1]
local lease_arg, epoch_arg, ttl = ARGV[1], tonumber(ARGV[2]), ARGV[3]

local s = redis.call('HMGET', sale, 'gate', 'epoch', 'lease', 'status', 'start', 'end', 'avail')
local now = now_ms()
local gate, epoch = gate_of(s[1], s[2], s[3], lease_arg)
if gate == GATE_OPEN and epoch ~= epoch_arg then gate = GATE_EPOCH end
if gate ~= GATE_OPEN then return {gate, epoch, now, 0, 0} end
local avail = tonumber(s[7])
if s[4] == 'closed' or now >= tonumber(s[6]) then return {gate, epoch, now, avail, 4} end
if now < tonumber(s[5]) then return {gate, epoch, now, avail, 3} end
if avail <= 0 then return {gate, epoch, now, avail, 6} end
for i = 2, #KEYS do redis.call('SET', KEYS[i], ARGV[i + 2] .. '@' .. epoch, 'PX', ttl) end
return {gate, epoch, now, avail, 0}
