-- adopt: orders of an older epoch come late, after Redis was built again without them: take their units from what
-- there is now, before they are written. Idempotent by order number.
--
-- Where the gate is not open, nobody is being sold anything, and nothing need be taken: the epoch that opens it next is
-- read from MySQL, with these orders in it. Waiting for the gate instead would be for ever, since the rebuild that opens
-- it waits for the queue that these orders hold up. Only an epoch that MySQL has begun already, and whose load is still
-- on its way, would not have them: the fence has that load refused.
--
-- KEYS  1 sale (hash)   2 buyers (hash)   3 pending (hash)
-- ARGV  1 lease ('' = ask INFO)   2 epoch   3 the highest limit there ever was (0 = none)   then for each order: buyer id, quantity, order number, entry (JSON)
-- Returns {gate, epoch, answer…}; an answer: 1 taken now or before, or need not be; 0 nothing left for it, or not
--       within the limit with what its buyer has bought since: else MySQL would fail the newer one. Without answers where Redis
--       has a newer epoch. Today's limit is not asked: it may have been lowered since the promise.
local sale, buyers, pending = KEYS[1], KEYS[2], KEYS[3]
local FIRST_ARG, STRIDE = 4, 4
local s = redis.call('HMGET', sale, 'gate', 'epoch', 'lease', 'avail', 'pend')
local gate, epoch = gate_of(s[1], s[2], s[3], ARGV[1])
local wanted, limit = tonumber(ARGV[2]), tonumber(ARGV[3])
if epoch > wanted then return {GATE_EPOCH, epoch} end
if gate ~= GATE_OPEN or epoch < wanted then
  if epoch < wanted then redis.call('HSET', sale, 'fence', wanted) end
  if epoch > 0 then redis.call('HSET', sale, 'gate', GATE_SHUT) end
  local waived = {}
  for a = FIRST_ARG, #ARGV, STRIDE do waived[#waived + 1] = 1 end
  return {gate, epoch, unpack(waived)}
end
local avail, pend = tonumber(s[4]), tonumber(s[5])
local now = now_ms()
local was_pending = pend

local function take(buyer, q, sn, entry)
  if redis.call('HEXISTS', pending, sn) == 1 then return 1 end
  local held, sns = string.match(redis.call('HGET', buyers, buyer) or '0', '^(%d+)(.*)$')
  if string.find(sns, sn, 1, true) then return 1 end
  if not q or q > avail or (limit > 0 and held + q > limit) then return 0 end
  redis.call('HSET', pending, sn, now .. ':' .. q .. ':' .. entry)
  redis.call('HSET', buyers, buyer, (held + q) .. sns .. ' ' .. sn .. ':' .. q)
  avail, pend = avail - q, pend + q
  return 1
end

local answers = {}
for a = FIRST_ARG, #ARGV, STRIDE do
  answers[#answers + 1] = take(ARGV[a], quantity(ARGV[a + 1]), ARGV[a + 2], ARGV[a + 3])
end
if pend > was_pending then
  redis.call('HSET', sale, 'avail', avail, 'pend', pend)
  if was_pending == 0 then redis.call('HSET', sale, 'since', now) end
end
return {gate, epoch, unpack(answers)}
