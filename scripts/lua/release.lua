-- release: gives moves of one goods to Redis, each once, by its id; and only while the gate is open, for what a master
-- that is none any more is given would be lost, and marked as given.
--
-- KEYS  1 sale (hash)   2 buyers (hash)   3 pending (hash)   4 moves (set of ids given in this epoch)
-- ARGV  1 lease ('' = ask INFO)   then for each move: id, its epoch, kind (cancel, expire, fail, delta), buyer id, order number, units
-- Returns for each move: 1 given, 0 given before, 2 of an older epoch (the load of this one had it in),
--       3 Redis is not there yet (the gate is not open, or an older epoch: ask again later), 4 a cut larger than what is unsold:
--       said of an id once, it is said for the rest of the epoch, so that whoever asks again hears the same.
local sale, buyers, pending, moves = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local FIRST_ARG, STRIDE = 2, 6
local GIVEN, BEFORE, COVERED, LATER, TOO_MUCH = 1, 0, 2, 3, 4
local s = redis.call('HMGET', sale, 'gate', 'epoch', 'lease')
local gate, epoch = gate_of(s[1], s[2], s[3], ARGV[1])

local function let_go(buyer, sn, units)
  local held, sns = string.match(redis.call('HGET', buyers, buyer) or '', '^(%d+)(.*)$')
  if not held then return end
  local rest = held - units
  if rest <= 0 then
    redis.call('HDEL', buyers, buyer)
  else
    redis.call('HSET', buyers, buyer, rest .. string.gsub(sns, ' ' .. sn .. ':%d+', ''))
  end
end

local function give_back(kind, buyer, sn, units)
  local from = 'sold'
  if redis.call('HDEL', pending, sn) == 1 then
    from = 'pend'
  elseif kind == 'fail' then
    return -- it took nothing of this epoch
  end
  redis.call('HINCRBY', sale, from, -units)
  redis.call('HINCRBY', sale, 'avail', units)
  let_go(buyer, sn, units)
end

local answers = {}
for a = FIRST_ARG, #ARGV, STRIDE do
  local id, of, kind, buyer, sn, units = ARGV[a], tonumber(ARGV[a + 1]), ARGV[a + 2], ARGV[a + 3], ARGV[a + 4], tonumber(ARGV[a + 5])
  local answer = GIVEN
  if gate ~= GATE_OPEN or epoch < of then
    answer = LATER
  elseif epoch > of then
    answer = COVERED
  elseif redis.call('SISMEMBER', moves, id) == 1 then
    answer = BEFORE
  elseif redis.call('SISMEMBER', moves, id .. '!') == 1 then
    answer = TOO_MUCH
  elseif kind ~= 'delta' then
    redis.call('SADD', moves, id)
    give_back(kind, buyer, sn, units)
  elseif redis.call('HGET', sale, 'avail') + units < 0 then
    answer = TOO_MUCH
    redis.call('SADD', moves, id .. '!')
  else
    redis.call('SADD', moves, id)
    redis.call('HINCRBY', sale, 'avail', units)
    redis.call('HINCRBY', sale, 'total', units)
  end
  answers[#answers + 1] = answer
end
return answers
