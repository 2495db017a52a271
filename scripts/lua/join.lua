-- join: hands out numbers in the line of a sale, finds the numbers that they have, or removes
-- them. A buyer has one place. Whoever has a ticket gets its number again after Redis lost it. A
-- buyer whose turn has come, or who has left, joins again at the end.
--
-- KEYS  1 sale   2 room   3 turns   4 done   5 gap   6 late   7 buyers   8 used   (see room and gate)
--       9… for each buyer: a hash of buyers -> numbers
-- ARGV  1 lease ('' = read INFO)   2 mode (0 find, 1 join, 2 leave)
--       then for each buyer: id, field in the hash, number of the ticket or '', position of that
--       number or ''
-- Returns the state (see room); if the room is ready also, for each buyer: number, end of the
--       admission (Unix ms, 0 = none), mark (0 in line or admitted, 1 passed or left, 2 in line and
--       called first, 3 unknown, 4 no number is granted, 5 over the buyer's limit), and after a mark
--       of 5 the numbers of the buyer's orders, separated by spaces
local sale, room, turns, done, gap, late, buyers, used = unpack(KEYS, 1, 8)
local FIND, JOIN, LEAVE = '0', '1', '2'
local FIRST_ARG, STRIDE, FIRST_BUCKET, mode = 3, 4, 9, ARGV[2]
local state = room_of(sale, room, turns, ARGV[1])
if not state.ready then return state.answer() end
local first, joined, results, left = state.next, {}, {}, 0
-- Before the start there is neither, and most buyers join then.
local any_turns = redis.call('EXISTS', turns) == 1
local any_orders = redis.call('EXISTS', buyers, used) > 0
local holdings = holding_functions()

local function forget(number)
  redis.call('SETBIT', done, number, 1)
  redis.call('ZREM', turns, number)
  redis.call('ZREM', late, number)
end

-- leave ends the place of a number, also one that was not called. Nodes read the bitmap again then.
local function leave(number)
  if not has(done, number) then left = left + 1 end
  forget(number)
end

-- restored returns the number that a buyer has after showing a ticket.
local function restored(bucket, field, number, ticket, position)
  local t = tonumber(ticket)
  if not t or t > state.next or has(done, t) then return number end
  if number and number <= t and not has(done, number) then return number end
  if has(gap, t) then
    redis.call('SETBIT', gap, t, 0)
    if state.admitted >= tonumber(position ~= '' and position or 0) then
      redis.call('ZADD', late, position ~= '' and position or 0, t)
    end
  end
  if number then leave(number) end
  redis.call('HSET', bucket, field, t)
  return t
end

-- admitted_until returns the end of a buyer's admission, 0 without one. An admission of the number
-- becomes the buyer's: reserve knows buyers only.
local function admitted_until(buyer, number)
  if not any_turns then return 0 end
  local till = tonumber(redis.call('ZSCORE', turns, 'b' .. buyer) or 0)
  local of_number = number and redis.call('ZSCORE', turns, number)
  -- A master that has the turn from MySQL lacks that its number is done.
  if of_number or till > 0 and number then forget(number) end
  if of_number then
    till = tonumber(of_number)
    redis.call('ZADD', turns, till, 'b' .. buyer)
  end
  return till > state.now and till or 0
end

-- full reports whether a buyer may buy no more.
local function full(buyer)
  local holding = any_orders and redis.call('HGET', buyers, buyer)
  return holding and holdings.held_of(holding) >= state.limit
end

-- has_used reports whether a buyer whose number is done has bought with the admission, and so has
-- missed none. A room that was lost forgets it, but not who may buy no more.
local function has_used(buyer)
  return any_orders and redis.call('SISMEMBER', used, buyer) == 1 or full(buyer)
end

local function note_joined(buyer)
  state.next = state.next + 1
  joined[#joined + 1] = buyer .. ':' .. state.next
  return state.next, IN_LINE
end

local function new_number(bucket, field, buyer)
  if full(buyer) then return 0, OVER_LIMIT end
  if state.next >= state.granted then return 0, EXHAUSTED end
  redis.call('HSET', bucket, field, state.next + 1)
  if any_orders then redis.call('SREM', used, buyer) end
  return note_joined(buyer)
end

-- is_first joins a buyer who has no number, in one call. The others take several.
local function is_first(bucket, field, ticket)
  return mode == JOIN and ticket == '' and not any_turns and not any_orders
    and state.next < state.granted and redis.call('HSETNX', bucket, field, state.next + 1) == 1
end

-- find returns the number of a buyer (nil: none), the end of the admission and the mark.
local function find(bucket, field, buyer, ticket, position)
  local number = tonumber(redis.call('HGET', bucket, field) or nil)
  if mode == LEAVE then
    redis.call('ZREM', turns, 'b' .. buyer)
    if not number then return nil, 0, UNKNOWN end
    leave(number)
    redis.call('HDEL', bucket, field)
    return number, 0, PASSED
  end
  number = restored(bucket, field, number, ticket, position)
  local till = admitted_until(buyer, number)
  if till > 0 then return number, till, IN_LINE end
  if not number or has(done, number) then
    if mode == JOIN then
      local fresh, mark = new_number(bucket, field, buyer)
      return fresh, 0, mark
    end
    return number, 0, number and not has_used(buyer) and PASSED or UNKNOWN
  end
  return number, 0, redis.call('ZSCORE', late, number) and LATE or IN_LINE
end

for i = 0, (#ARGV - FIRST_ARG + 1) / STRIDE - 1 do
  local a, bucket = FIRST_ARG + i * STRIDE, KEYS[FIRST_BUCKET + i]
  local buyer, field, ticket = ARGV[a], ARGV[a + 1], ARGV[a + 2]
  local number, till, mark
  if is_first(bucket, field, ticket) then
    till, number, mark = 0, note_joined(buyer)
  else
    number, till, mark = find(bucket, field, buyer, ticket, ARGV[a + 3])
  end
  local at = #results
  results[at + 1], results[at + 2], results[at + 3] = number or 0, till, mark
  if mark == OVER_LIMIT then
    results[at + 4] = holdings.numbers_of(redis.call('HGET', buyers, buyer))
  end
end
if left > 0 then redis.call('HINCRBY', room, 'left', left) end
if state.next > first then
  if state.size < 0 then
    state.digest = redis.sha1hex(state.digest .. table.concat(joined, ' '))
  end
  redis.call('HSET', room, 'next', state.next, 'digest', state.digest)
end
local answer = state.answer()
for i = 1, #results do answer[#answer + 1] = results[i] end
return answer
