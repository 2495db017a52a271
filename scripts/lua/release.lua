-- release: applies stock moves of one goods, each once by its id. It does so only while the gate is
-- open: on a demoted master the units would be lost, and MySQL would have them as released. The
-- number of an order whose units return stays in its buyer's holding, so that a repeated path takes
-- nothing.
--
-- KEYS  1 sale (hash)   2 buyers (hash)   3 pending (hash)   4 moves (set: ids of this epoch)
--       5 blocks (hash)
-- ARGV  1 lease ('' = read INFO)
--       then for each move: id, epoch, kind (cancel, expire, fail, delta), buyer id,
--       order number, units
-- Returns for each move:
--       1 applied   0 applied before   2 of an older epoch (this epoch's load included it)
--       3 deferred: the gate is not open, or Redis has an older epoch; repeat later
--       4 a cut of more units than are unsold and, in a waiting room, not promised; repeats in this
--         epoch get the same result
local sale, buyers, pending, moves, blocks = unpack(KEYS)
local FIRST_ARG, STRIDE = 2, 6
local APPLIED, APPLIED_BEFORE, COVERED, DEFERRED, TOO_LARGE = 1, 0, 2, 3, 4
local s = redis.call('HMGET', sale, 'gate', 'epoch', 'lease', 'from', 'until')
local gate, epoch = gate_of(s, ARGV[1])
local now = now_ms()
local holdings, orders = holding_functions(), pending_functions()

local function return_units(kind, buyer, sn, units)
  local order, holding = redis.call('HGET', pending, sn), redis.call('HGET', buyers, buyer)
  if kind == 'fail' and not order and holdings.order_in(holding, sn) then return end
  holdings.end_order(buyers, buyer, holding, sn, now)
  if order then
    units = orders.units_of(order)
    redis.call('HDEL', pending, sn)
    orders.leave_block(blocks, order, 1)
  elseif kind == 'fail' then
    return -- the order took nothing in this epoch
  end
  redis.call('HINCRBY', sale, order and 'pend' or 'sold', -units)
  redis.call('HINCRBY', sale, 'avail', units)
end

local results = {}
for a = FIRST_ARG, #ARGV, STRIDE do
  local id, of, kind = ARGV[a], tonumber(ARGV[a + 1]), ARGV[a + 2]
  local buyer, sn, units = ARGV[a + 3], ARGV[a + 4], tonumber(ARGV[a + 5])
  local result = APPLIED
  if gate ~= GATE_OPEN or epoch < of then
    result = DEFERRED
  elseif epoch > of then
    result = COVERED
  elseif redis.call('SISMEMBER', moves, id) == 1 then
    result = APPLIED_BEFORE
  elseif redis.call('SISMEMBER', moves, id .. '!') == 1 then
    result = TOO_LARGE
  elseif kind ~= 'delta' then
    redis.call('SADD', moves, id)
    return_units(kind, buyer, sn, units)
  elseif units < 0 and redis.call('HGET', sale, 'avail') + units < orders.promised(sale) then
    result = TOO_LARGE
    redis.call('SADD', moves, id .. '!')
  else
    redis.call('SADD', moves, id)
    redis.call('HINCRBY', sale, 'avail', units)
    redis.call('HINCRBY', sale, 'total', units)
  end
  results[#results + 1] = result
end
return results
