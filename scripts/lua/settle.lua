-- settle: moves orders that MySQL has committed from pending to sold, each number once.
--
-- KEYS  1 sale (hash)   2 pending (hash)
-- ARGV  order numbers
-- Returns how many of them were pending.
local sale, pending = KEYS[1], KEYS[2]
local found = redis.call('HMGET', pending, unpack(ARGV))
local units, newest, settled = 0, 0, {}
for i, sn in ipairs(ARGV) do
  local ms, q = string.match(found[i] or '', '^(%d+):(%d+):')
  if ms and redis.call('HDEL', pending, sn) == 1 then
    units, newest = units + q, math.max(newest, tonumber(ms))
    settled[#settled + 1] = sn
  end
end
if #settled > 0 then
  redis.call('HINCRBY', sale, 'pend', -units)
  redis.call('HINCRBY', sale, 'sold', units)
  if newest > tonumber(redis.call('HGET', sale, 'since')) then
    redis.call('HSET', sale, 'since', newest)
  end
end
return #settled
