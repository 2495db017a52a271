-- admit: calls the next in line, each for a limited time. Whoever is called and reserves in that
-- time finds a unit: units are promised to all admissions that are not used, and reserve refuses
-- all others. The script calls nobody before the draw, nobody faster than the rate, and nobody
-- whose number is done or in a gap. Of concurrent calls one moves the watermark, because the others
-- expect an older one.
--
-- KEYS  1 sale   2 room   3 turns   4 done   5 gap   6 late   (see room)
-- ARGV  1 lease ('' = read INFO)   2 the watermark that the caller expects
--       3 life of an admission, ms   4… the numbers at the following positions
-- Returns the state with details (see room).
local sale, room, turns, done, gap, late = unpack(KEYS)
local FIRST_ARG, LONG_MS, COUNTED_MS = 4, 5000, 1000
-- A line is moved each 100 ms, with the permits of the time since then, and that call may be late.
local LEAST_BURST_MS = 200
local state = room_of(sale, room, ARGV[1])
if not state.ready then return details_of(state, room, turns) end
local now, life = state.now, tonumber(ARGV[3])
local s = redis.call('HMGET', sale, 'status', 'end', 'limit', 'card')
-- A caller may not know yet that the merchant has changed the rate.
local rate = cjson.decode(s[4]).rate
local interval = 1000 / rate.permitsPerSecond
local burst = math.max(1000 * rate.maxBurstSeconds, interval, LEAST_BURST_MS)
local r = redis.call('HMGET', room, 'paid', 'at', 'missed', 'calls')
local early = now < tonumber(state.start)
local selling = s[1] == 'exposed' and not early and now < tonumber(s[2])
local limit, avail, admitted = tonumber(s[3]), tonumber(state.avail), tonumber(state.admitted)
local called_at, missed = tonumber(r[2] or 0), tonumber(r[3] or 0)

-- A clock that was set must neither lengthen nor end an admission. A pause of all admitters cannot
-- be distinguished from a clock set forward. A part of it counts, so that admissions end even if
-- every call is late. Until a start that was moved later nobody can buy, so no time counts.
local idle = called_at > 0 and now - called_at or 0
if idle < 0 or early then
  move_turns(turns, idle)
elseif idle > LONG_MS then
  move_turns(turns, idle - COUNTED_MS)
end
for _, turn in ipairs(redis.call('ZRANGEBYSCORE', turns, '-inf', now)) do
  redis.call('ZREM', turns, turn)
  if string.sub(turn, 1, 1) ~= 'b' then redis.call('SETBIT', done, turn, 1) end
  missed = missed + 1
end
local open = redis.call('ZCARD', turns)
local paid = math.max(math.min(tonumber(r[1] or 0), now), now - burst)

-- The others take at most open * limit units, so one is left for whoever is called next
-- (internal/testing/roommodel has the same rule).
local function may_call()
  return paid + interval <= now and open * limit < avail
end

local function call(number)
  redis.call('ZADD', turns, now + life, number)
  open, paid = open + 1, paid + interval
end

if selling and state.seed then
  while may_call() do
    local number = redis.call('ZRANGE', late, 0, 0)[1]
    if not number then break end
    redis.call('ZREM', late, number)
    if not has(done, number) then call(number) end
  end
  for a = FIRST_ARG, tonumber(ARGV[2]) == admitted and #ARGV or 0 do
    local number = ARGV[a]
    if tonumber(number) > state.next then break end
    if not has(done, number) and not has(gap, number) then
      if not may_call() then break end
      call(number)
    end
    admitted = admitted + 1
  end
end
state.admitted = admitted
redis.call('HSET', room, 'admitted', admitted, 'paid', string.format('%.3f', paid), 'missed',
  missed, 'at', now, 'life', ARGV[3], 'calls', (r[4] or 0) + 1)
return details_of(state, room, turns)
