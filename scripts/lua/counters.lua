-- counters: adds what one node counted of a sale in a second: refusals by reason, orders reserved.
--
-- KEYS  1 sale (hash)   2 refusals (hash: reason -> count; since -> second)
--       3 orders (hash: second -> count)
-- ARGV  1 orders reserved   2… reason, count, …
-- Returns 1, or 0 where Redis has no such sale; then nothing is stored.
local sale, refusals, orders = KEYS[1], KEYS[2], KEYS[3]
local KEPT_S, REFUSALS_LIFE_S, ORDERS_LIFE_S = 15, 7 * 24 * 3600, 60
if redis.call('EXISTS', sale) == 0 then return 0 end
local second = tonumber(redis.call('TIME')[1])
redis.call('HSETNX', refusals, 'since', second)
for i = 2, #ARGV, 2 do redis.call('HINCRBY', refusals, ARGV[i], ARGV[i + 1]) end
redis.call('EXPIRE', refusals, REFUSALS_LIFE_S)
if ARGV[1] ~= '0' then
  redis.call('HINCRBY', orders, second, ARGV[1])
  for _, s in ipairs(redis.call('HKEYS', orders)) do -- a later one is of a clock that was set back
    if math.abs(tonumber(s) - second) > KEPT_S then redis.call('HDEL', orders, s) end
  end
  redis.call('EXPIRE', orders, ORDERS_LIFE_S)
end
return 1
