-- settle: moves orders that MySQL has committed from pending to sold, each number once.
--
-- KEYS  1 sale (hash)   2 pending (hash)   3 blocks (hash; both see gate)
-- ARGV  order numbers
-- Returns how many of them were pending.
local sale, pending, blocks = KEYS[1], KEYS[2], KEYS[3]
local found = redis.call('HMGET', pending, unpack(ARGV))
local settled, seen, times = {}, {}, {}
for i, sn in ipairs(ARGV) do
  local order = not seen[sn] and found[i]
  if order then
    seen[sn], settled[#settled + 1] = true, sn
    times[order] = (times[order] or 0) + 1 -- the orders of a block have the same value
  end
end
if #settled == 0 then return 0 end
local units, newest = 0, 0
local orders = pending_functions()
for order, n in pairs(times) do -- a malformed value ends the script before its first write
  units = units + n * orders.units_of(order)
  newest = math.max(newest, string.sub(order, 1, string.find(order, ':', 1, true) - 1))
end
redis.call('HDEL', pending, unpack(settled))
for order, n in pairs(times) do orders.leave_block(blocks, order, n) end
redis.call('HINCRBY', sale, 'pend', -units)
redis.call('HINCRBY', sale, 'sold', units)
if newest > tonumber(redis.call('HGET', sale, 'since')) then
  redis.call('HSET', sale, 'since', newest)
end
return #settled
