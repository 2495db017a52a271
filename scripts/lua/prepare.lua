-- prepare: makes a room ready on a master that may hand out numbers from now on. A replica that was
-- promoted, or a master that restarted, may lack the last numbers that were handed out. The numbers
-- above those it knows, up to the ones that MySQL had granted, are a gap. A number leaves the gap
-- when its buyer shows a ticket.
--
-- KEYS  1 sale   2 room   3 turns   4 done   5 gap   6 late   (see room)
-- ARGV  1 lease ('' = read INFO)   2 lease and epoch that MySQL granted numbers   3 next   4 limit
--       5 admitted   6 size of the draw (-1 = none)   7 digest   8 seed ('' before the draw)
--       9 commitment   10 gaps (JSON)   11 calls (see room) of MySQL's turns
--       12… turns: a member of the sorted set, a space, and its rest in ms
-- Returns the state with details (see room).
local sale, room, turns, _, gap = unpack(KEYS, 1, 5)
local FIRST_ARG = 12
local RESTORED_MS = 30000 -- the rest of a turn that the release before ADR 94 saved
local state = room_of(sale, room, ARGV[1])
if state.gate ~= GATE_OPEN or state.ready or state.wanted ~= ARGV[2] then
  return details_of(state, room, turns)
end
local called_at, calls = unpack(redis.call('HMGET', room, 'at', 'calls'))
for _, range in ipairs(cjson.decode(ARGV[10])) do
  -- A gap up to next is one that this room has known before.
  for number = math.max(range.from, state.next + 1), range.to do
    redis.call('SETBIT', gap, number, 1)
  end
end
-- Nobody could buy since the last call of admit, whose clock may have been another one's. So the
-- admissions keep the rest that they had then.
if called_at then move_turns(turns, state.now - called_at) end
redis.call('HSET', room, 'at', state.now)
-- MySQL's turns are newer than those of a replica that lagged. A turn that they lack was used, left
-- or taken over by its buyer, and must hold no unit.
if tonumber(ARGV[11]) > tonumber(calls or 0) then
  redis.call('DEL', turns)
  for a = FIRST_ARG, #ARGV do
    local turn, rest = string.match(ARGV[a], '^(%S+) ?(%d*)$')
    redis.call('ZADD', turns, state.now + (tonumber(rest) or RESTORED_MS), turn)
  end
end
-- The size that this room has frozen stays: those who joined since are not in the draw.
redis.call('HDEL', room, 'seed')
if ARGV[6] ~= '-1' then
  redis.call('HSET', room, 'size', ARGV[6], 'seed', ARGV[8], 'digest', ARGV[7])
elseif state.digest == '' then
  redis.call('HSET', room, 'digest', ARGV[7])
end
redis.call('HSET', room, 'lease', ARGV[2], 'next', ARGV[3], 'limit', ARGV[4],
  'admitted', math.max(tonumber(ARGV[5]), tonumber(state.admitted)), 'commitment', ARGV[9],
  'gaps', ARGV[10], 'calls', state.epoch * 2 ^ 32)
return details_of(room_of(sale, room, ARGV[1]), room, turns)
