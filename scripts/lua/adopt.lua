-- adopt: takes units of the present epoch for orders of an older one, before they are written.
-- Idempotent by order number. It takes units only while the gate is open in the epoch that MySQL
-- has, because units of another epoch are not the sale's. Otherwise the writer parks the orders. An
-- order that gets no units fails.
--
-- KEYS  1 sale (hash)   2 buyers (hash)   3 pending (hash)
-- ARGV  1 lease ('' = read INFO)   2 epoch   3 the sale's highest limit so far (0 = none)
--       4 whether an operator requeues these orders (0, 1)
--       then for each order: buyer id, quantity, order number, entry (JSON)
-- Returns {gate, epoch, units…}; without units unless the gate is 0. units are what each order has
--       now: its quantity, or 0 where too few are left or the buyer would exceed the limit of
--       argument 3. Any other number: the buyer has repeated the path with another quantity in this
--       epoch. The caller must drop its line, because that reservation has the order's number.
-- The limit of argument 3 is the highest so far: the present one may have been lowered since the
-- reservation. An order that gets no units stays in the buyer's holding, so that its path takes
-- nothing later. An order that has ended gets none: its first consumer may have slept while another
-- one wrote it, and the buyer cancelled. Only a requeue takes units for it again. The limit applies
-- to it too: a newer order of the buyer may be pending, and MySQL would refuse that one. A requeue
-- leaves the units that are promised to admitted buyers of a waiting room. A late order need not,
-- because it was promised before them.
local sale, buyers, pending = KEYS[1], KEYS[2], KEYS[3]
local FIRST_ARG, STRIDE = 5, 4
local s = redis.call('HMGET', sale, 'gate', 'epoch', 'lease', 'from', 'until', 'avail', 'pend')
local gate, epoch = gate_of(s, ARGV[1])
if gate == GATE_OPEN and epoch ~= tonumber(ARGV[2]) then gate = GATE_EPOCH end
if gate ~= GATE_OPEN then return {gate, epoch} end
local avail, pend, limit = tonumber(s[6]), tonumber(s[7]), tonumber(ARGV[3])
local requeued = ARGV[4] == '1'
local now = now_ms()
local was_pending = pend
local holdings = holding_functions()
local promised = requeued and pending_functions().promised(sale) or 0

local function take(buyer, q, sn, entry)
  local holding = redis.call('HGET', buyers, buyer)
  local had = holdings.order_in(holding, sn)
  if had and (had > 0 or not requeued) then return had end
  if q == 0 or q > avail - promised or (limit > 0 and holdings.held_of(holding) + q > limit) then
    holdings.end_order(buyers, buyer, holding, sn, now)
    return 0
  end
  redis.call('HSET', pending, sn, now .. ':' .. q .. ':' .. entry)
  redis.call('HSET', buyers, buyer, holdings.with_order(holding, sn, q))
  avail, pend = avail - q, pend + q
  return q
end

local answers = {}
for a = FIRST_ARG, #ARGV, STRIDE do
  local digits = string.match(ARGV[a + 1], '^[1-9]%d*$') -- tonumber also accepts 0x10, 1e3 and nan
  answers[#answers + 1] = take(ARGV[a], tonumber(digits or 0), ARGV[a + 2], ARGV[a + 3])
end
if pend > was_pending then
  redis.call('HSET', sale, 'avail', avail, 'pend', pend)
  note_time(sale, s, now)
  if was_pending == 0 then redis.call('HSET', sale, 'since', now) end
end
return {gate, epoch, unpack(answers)}
