-- adopt: orders of an older epoch come late, after Redis was built again without them: take their units from what
-- there is now, before they are written. Idempotent by order number.
--
-- KEYS  1 sale (hash)   2 buyers (hash)   3 pending (hash)
-- ARGV  1 lease ('' = ask INFO)   2 epoch   then for each order: buyer id, quantity, order number, entry (JSON)
-- Returns {gate, epoch, answer…}; an answer: 1 taken now or before, 0 nothing left for it or over the limit.
local sale, buyers, pending = KEYS[1], KEYS[2], KEYS[3]
local FIRST_ARG, STRIDE = 3, 4
local s = redis.call('HMGET', sale, 'gate', 'epoch', 'lease', 'limit', 'avail', 'pend')
local gate, epoch = gate_of(s[1], s[2], s[3], ARGV[1])
if gate == GATE_OPEN and epoch ~= tonumber(ARGV[2]) then gate = GATE_EPOCH end
if gate ~= GATE_OPEN then return {gate, epoch} end
local limit, avail, pend = tonumber(s[4]), tonumber(s[5]), tonumber(s[6])
local now = now_ms()
local was_pending = pend

local function take(buyer, q, sn, entry)
  if redis.call('HEXISTS', pending, sn) == 1 then return 1 end
  local held, sns = string.match(redis.call('HGET', buyers, buyer) or '0', '^(%d+)(.*)$')
  if string.find(sns, sn, 1, true) then return 1 end
  if not q or held + q > limit or q > avail then return 0 end
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
