-- tally: adds what one node counted of a sale in a second: refusals by reason, and orders taken.
--
-- KEYS  1 sale (hash)   2 tally (hash: reason → refusals)   3 pace (hash: second → orders)
-- ARGV  1 orders taken   2… reason, refusals, …
-- Returns 1, or 0 where Redis has no such sale: then nothing is kept of it.
local sale, tally, pace = KEYS[1], KEYS[2], KEYS[3]
local KEPT_S, TALLY_LIFE_S, PACE_LIFE_S = 15, 7 * 24 * 3600, 60
if redis.call('EXISTS', sale) == 0 then return 0 end
for i = 2, #ARGV, 2 do redis.call('HINCRBY', tally, ARGV[i], ARGV[i + 1]) end
redis.call('EXPIRE', tally, TALLY_LIFE_S)
if ARGV[1] ~= '0' then
  local second = tonumber(redis.call('TIME')[1])
  redis.call('HINCRBY', pace, second, ARGV[1])
  for _, s in ipairs(redis.call('HKEYS', pace)) do
    if tonumber(s) < second - KEPT_S then redis.call('HDEL', pace, s) end
  end
  redis.call('EXPIRE', pace, PACE_LIFE_S)
end
return 1
