-- join: hands out numbers in the line of a sale, finds the numbers that they have, or removes
-- them. A buyer has one place. Whoever has a ticket gets its number again after Redis lost it. A
-- buyer whose turn has come, or who has left, joins again at the end.
--
-- KEYS  1 sale   2 room   3 turns   4 done   5 gap   6 late   7 buyers   (see room and gate)
--       8… for each buyer: a hash of buyers -> numbers
-- ARGV  1 lease ('' = read INFO)   2 mode (0 find, 1 join, 2 leave)
--       then for each buyer: id, field in the hash, number of the ticket or '', position of that
--       number or ''
-- Returns the state (see room); if the room is ready also, for each buyer: number, end of the
--       admission (Unix ms, 0 = none), mark (0 in line or admitted, 1 passed or left, 2 in line and
--       called first, 3 unknown, 4 no number is granted, 5 over the buyer's limit)
local sale, room, turns, done, gap, late, buyers = unpack(KEYS, 1, 7)
local FIND, JOIN, LEAVE = '0', '1', '2'
local FIRST_ARG, STRIDE, FIRST_BUCKET, mode = 3, 4, 8, ARGV[2]
local state = room_of(sale, room, turns, ARGV[1])
if not state.ready then return state.answer() end
local first, joined, results = state.next, {}, {}

local function forget(number)
  redis.call('SETBIT', done, number, 1)
  redis.call('ZREM', turns, number)
  redis.call('ZREM', late, number)
end

-- restored returns the number that a buyer has after showing a ticket.
local function restored(bucket, field, number, ticket, position)
  local t = tonumber(ticket)
  if not t or t > state.next or number and number <= t or has(done, t) then return number end
  if has(gap, t) then
    redis.call('SETBIT', gap, t, 0)
    if state.admitted >= tonumber(position ~= '' and position or 0) then
      redis.call('ZADD', late, position ~= '' and position or 0, t)
    end
  end
  if number then forget(number) end
  redis.call('HSET', bucket, field, t)
  return t
end

-- admitted_until returns the end of a buyer's admission, 0 without one. An admission of the number
-- becomes the buyer's: reserve knows buyers only.
local function admitted_until(buyer, number)
  local till = tonumber(redis.call('ZSCORE', turns, 'b' .. buyer) or 0)
  local of_number = number and redis.call('ZSCORE', turns, number)
  if of_number then
    forget(number)
    till = tonumber(of_number)
    redis.call('ZADD', turns, till, 'b' .. buyer)
  end
  return till > state.now and till or 0
end

local function new_number(bucket, field, buyer)
  local holding = redis.call('HGET', buyers, buyer)
  if holding and held_of(holding) >= state.limit then return 0, OVER_LIMIT end
  if state.next >= state.granted then return 0, EXHAUSTED end
  local number = state.next + 1
  state.next = number
  redis.call('HSET', bucket, field, number)
  joined[#joined + 1] = buyer .. ':' .. number
  return number, IN_LINE
end

for i = 0, (#ARGV - FIRST_ARG + 1) / STRIDE - 1 do
  local a, bucket = FIRST_ARG + i * STRIDE, KEYS[FIRST_BUCKET + i]
  local buyer, field, mark = ARGV[a], ARGV[a + 1], IN_LINE
  local number = tonumber(redis.call('HGET', bucket, field) or nil)
  if mode ~= LEAVE then number = restored(bucket, field, number, ARGV[a + 2], ARGV[a + 3]) end
  local till = admitted_until(buyer, number)
  if mode == LEAVE and number then
    forget(number)
    redis.call('ZREM', turns, 'b' .. buyer)
    redis.call('HDEL', bucket, field)
    till, mark = 0, PASSED
  elseif till == 0 and (not number or has(done, number)) then
    mark = number and PASSED or UNKNOWN
    if mode == JOIN then number, mark = new_number(bucket, field, buyer) end
  elseif till == 0 and redis.call('ZSCORE', late, number) then
    mark = LATE
  end
  results[#results + 1] = number or 0
  results[#results + 1] = till
  results[#results + 1] = mark
end
if state.next > first then
  if state.size < 0 then
    state.digest = redis.sha1hex(state.digest .. table.concat(joined, ' '))
  end
  redis.call('HSET', room, 'next', state.next, 'digest', state.digest)
end
local answer = state.answer()
for i = 1, #results do answer[#answer + 1] = results[i] end
return answer
