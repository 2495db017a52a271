-- settle: moves orders that MySQL has committed from pending to sold, each number once.
--
-- KEYS  1 sale (hash)   2 pending (hash: sn -> "ms:quantity:entry")
-- ARGV  order numbers
-- Returns how many of them were pending.
local sale, pending = KEYS[1], KEYS[2]
local found = redis.call('HMGET', pending, unpack(ARGV))
local units, newest, settled, seen = 0, 0, {}, {}
for i, sn in ipairs(ARGV) do
  local order = not seen[sn] and found[i]
  if order then
    local ms = string.find(order, ':', 1, true)
    local q = string.find(order, ':', ms + 1, true)
    units = units + string.sub(order, ms + 1, q - 1)
    newest = math.max(newest, string.sub(order, 1, ms - 1))
    seen[sn], settled[#settled + 1] = true, sn
  end
end
if #settled > 0 then
  redis.call('HDEL', pending, unpack(settled))
  redis.call('HINCRBY', sale, 'pend', -units)
  redis.call('HINCRBY', sale, 'sold', units)
  if newest > tonumber(redis.call('HGET', sale, 'since')) then
    redis.call('HSET', sale, 'since', newest)
  end
end
return #settled
