-- join: hands out numbers in the line of a sale, finds the numbers of buyers, or removes buyers
-- from the line. A buyer has one number. A ticket restores a number that Redis has lost. A buyer
-- whose admission has ended, or who has left, joins again with a new number at the end. Before the
-- draw a buyer who has left gets the same number again. Otherwise a buyer could collect numbers: a
-- Redis that lost which ones were left would let the buyer choose the best position among them.
--
-- KEYS  1 sale   2 room   3 turns   4 done   5 gap   6 late   7 buyers   8 used   (see room, gate)
--       9… for each buyer: a hash of buyers -> numbers, with LEFT after a number that was left
--       before the draw. Earlier releases, which have no LEFT, take such a value for none.
-- ARGV  1 lease ('' = read INFO)   2 mode (0 find, 1 join, 2 leave)
--       3 number of arguments for each buyer: 1, 2 or 4, the first of the following
--       then for each buyer: id, field in the hash (else the id), number of the ticket or '',
--       position of that number or ''. A leave with a number is of that number only.
-- Returns the state (see room), with details if there are no buyers. A room that is ready also has,
--       for each buyer, the number of one who is in line and not admitted, or a list: number, end
--       of the admission (Unix ms, 0 = none), mark (0 in line or admitted, 1 passed or left, 2 in
--       line and called first, 3 unknown, 4 no number is granted, 5 over the buyer's limit), and
--       after a mark of 5 the numbers of the buyer's orders, separated by spaces. Nothing follows
--       the state if all buyers got new numbers, which are the last ones.
local FIND, JOIN, LEAVE = '0', '1', '2'
local LEFT, LEFT_PATTERN = ' left', '^(%d+) left$'
local FIRST_ARG, FIRST_BUCKET, WITH_FIELD, WITH_TICKET = 4, 9, 2, 4
local sale, room, turns, buyers, used, mode = KEYS[1], KEYS[2], KEYS[3], KEYS[7], KEYS[8], ARGV[2]
local state = room_of(sale, room, ARGV[1])
if #ARGV < FIRST_ARG then return details_of(state, room, turns) end
if not state.ready then return answer_of(state, turns) end

-- Before the start there is neither an admission nor an order, and most buyers join then. One
-- command joins a buyer who has no number.
local before_start = mode == JOIN and redis.call('EXISTS', turns, buyers, used) == 0

-- next_number returns the next number as text. redis.call and the operator .. would format it as a
-- floating-point number, which costs as much as a small command.
local function next_number(s) return string.format('%d', s.next + 1) end

-- note_joined assigns the next number to a buyer. The digest covers those who join before the draw.
local function note_joined(s, buyer, number)
  s.next = s.next + 1
  if not s.size then s.joined[#s.joined + 1] = buyer .. ':' .. number end
  return s.next
end

-- seat_function returns the function that decides on all buyers but new ones. To define all these
-- functions costs as much as two joins (see gate), so a call defines them only when it needs them.
local function seat_function()
  local done, gap, late = unpack(KEYS, 4, 6)
  local any_turns = not before_start and redis.call('EXISTS', turns) == 1
  local any_orders = not before_start and redis.call('EXISTS', buyers, used) > 0
  local holdings

  local function forget(number)
    redis.call('SETBIT', done, number, 1)
    redis.call('ZREM', turns, number)
    redis.call('ZREM', late, number)
  end

  -- leave ends the place of a number that was called or not. It counts numbers that were not in the
  -- bitmap done, because nodes read that bitmap again when the count changes.
  local function leave(number)
    if not has(done, number) then state.left = state.left + 1 end
    forget(number)
  end

  -- joined_again returns the number that a buyer has left, if the draw is still to come.
  local function joined_again(bucket, field, entry)
    local number = not state.size and string.match(entry or '', LEFT_PATTERN)
    if not number then return nil end
    redis.call('SETBIT', done, number, 0)
    redis.call('HSET', bucket, field, number)
    state.left = state.left + 1
    return tonumber(number)
  end

  -- turn_is_over reports whether a number that is not done was called and its turn has ended: Redis
  -- may have lost the end. It is true without a position, because the node asks again with it.
  local function turn_is_over(number, position)
    return state.seed and not has(gap, number)
      and (not position or position <= tonumber(state.admitted))
      and not redis.call('ZSCORE', turns, number)
  end

  -- accept_ticket returns the number that a buyer has after showing a ticket. Of two numbers that
  -- wait it is the lower one.
  local function accept_ticket(bucket, field, number, ticket, position)
    local t = tonumber(ticket)
    if not t or t > state.next or has(done, t) then return number end
    position = tonumber(position)
    if number and not has(done, number) and (number <= t or turn_is_over(t, position)) then
      return number
    end
    if has(gap, t) then
      -- Before the draw nobody has a position, and nobody is late. A node that has not seen the
      -- draw asks again with the position.
      if state.seed and not position then return t end
      redis.call('SETBIT', gap, t, 0)
      if state.seed and tonumber(state.admitted) >= position then
        redis.call('ZADD', late, position, t)
      end
    end
    if number then leave(number) end
    redis.call('HSET', bucket, field, t)
    return t
  end

  -- take_admission returns the end of a buyer's admission, 0 without one. An admission of the
  -- number becomes the buyer's: reserve knows buyers only.
  local function take_admission(buyer, number)
    if not any_turns then return 0 end
    local till = tonumber(redis.call('ZSCORE', turns, 'b' .. buyer) or 0)
    local of_number = number and redis.call('ZSCORE', turns, number)
    -- A master that has the turn from MySQL lacks that its number is done. If the turn has ended,
    -- the number may be a later one, which waits: MySQL may have a turn that new_number removed.
    if of_number or till > state.now and number then forget(number) end
    if of_number then
      till = tonumber(of_number)
      redis.call('ZADD', turns, till, 'b' .. buyer)
    end
    return till > state.now and till or 0
  end

  -- full reports whether a buyer may buy no more.
  local function full(buyer)
    local holding = any_orders and redis.call('HGET', buyers, buyer)
    if not holding then return false end
    holdings = holdings or holding_functions()
    return holdings.held_of(holding) >= tonumber(redis.call('HGET', sale, 'limit'))
  end

  -- has_used reports whether a buyer whose number is done has bought with the admission, and so has
  -- missed none. A room that was lost forgets it, but not who may buy no more.
  local function has_used(buyer)
    return any_orders and redis.call('SISMEMBER', used, buyer) == 1 or full(buyer)
  end

  local function new_number(bucket, field, buyer)
    if full(buyer) then return 0, OVER_LIMIT end
    if state.next >= state.granted then return 0, EXHAUSTED end
    -- A turn that has ended and is not removed yet would be open again when admit or prepare moves
    -- all ends. It would then end the new number.
    if any_turns and redis.call('ZREM', turns, 'b' .. buyer) == 1 then
      redis.call('HINCRBY', room, 'missed', 1)
    end
    local number = next_number(state)
    redis.call('HSET', bucket, field, number)
    if any_orders then redis.call('SREM', used, buyer) end
    return note_joined(state, buyer, number), IN_LINE
  end

  -- remove takes a buyer out of the line. It returns what find does.
  local function remove(bucket, field, buyer, ticket)
    local entry = redis.call('HGET', bucket, field)
    local number = tonumber(entry)
    -- A caller who has seen a number end may be slow, and the buyer has joined again since.
    if ticket ~= '' and tonumber(ticket) ~= number then
      return number, 0, number and IN_LINE or UNKNOWN
    end
    redis.call('ZREM', turns, 'b' .. buyer)
    if not number then return nil, 0, UNKNOWN end
    leave(number)
    if state.size then
      redis.call('HDEL', bucket, field)
    else
      redis.call('HSET', bucket, field, entry .. LEFT)
    end
    return number, 0, PASSED
  end

  -- find returns the number of a buyer (nil: none), the end of the admission and the mark. In mode
  -- join a buyer without a number that waits gets one.
  local function find(bucket, field, buyer, ticket, position)
    local entry = redis.call('HGET', bucket, field)
    local number = accept_ticket(bucket, field, tonumber(entry), ticket, position)
    if not number and mode == JOIN then number = joined_again(bucket, field, entry) end
    local till = take_admission(buyer, number)
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

  local decide = mode == LEAVE and remove or find
  return function(bucket, field, buyer, ticket, position)
    local number, till, mark = decide(bucket, field, buyer, ticket, position)
    if till == 0 and mark == IN_LINE then return number end
    local seat = {number or 0, till, mark}
    if mark == OVER_LIMIT then
      seat[4] = holdings.numbers_of(redis.call('HGET', buyers, buyer))
    end
    return seat
  end
end

local first, stride, seats, seat_of = state.next, tonumber(ARGV[3]), {}, nil
state.joined, state.left = {}, 0
for i = 1, #KEYS - FIRST_BUCKET + 1 do
  local a, bucket = FIRST_ARG + (i - 1) * stride, KEYS[FIRST_BUCKET + i - 1]
  local buyer = ARGV[a]
  local field = stride < WITH_FIELD and buyer or ARGV[a + 1]
  local ticket, position = '', nil
  if stride == WITH_TICKET then ticket, position = ARGV[a + 2], ARGV[a + 3] end
  local number = before_start and ticket == '' and state.next < state.granted and next_number(state)
  if number and redis.call('HSETNX', bucket, field, number) == 1 then
    seats[i] = note_joined(state, buyer, number)
  else
    seat_of = seat_of or seat_function()
    seats[i] = seat_of(bucket, field, buyer, ticket, position)
  end
end
if state.left > 0 then redis.call('HINCRBY', room, 'left', state.left) end
if state.next > first then
  if state.size then
    redis.call('HSET', room, 'next', state.next)
  else
    state.digest = redis.sha1hex(state.digest .. table.concat(state.joined, ' '))
    redis.call('HSET', room, 'next', state.next, 'digest', state.digest)
  end
end
local answer = answer_of(state, turns)
if state.next - first < #seats then
  for i = 1, #seats do answer[#answer + 1] = seats[i] end
end
return answer
