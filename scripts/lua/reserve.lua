-- reserve: takes units of one goods for a list of buyers, judging each reservation alone, in order.
--
-- KEYS  1 sale (hash)   2 buyers (hash: buyer -> "held sn:quantity …")
--       3 pending (hash: sn -> "ms:quantity:entry")   4 outbox (stream: b = JSON array of entries)
--       5… the random path of each reservation ("buyer@epoch", once used "buyer sn")
-- ARGV  1 lease ('' = read INFO)   2 the caller's epoch
--       3 age of the oldest pending order at which the gate shuts, ms (0 = never)
--       4 how long a used path is kept, s
--       then for each reservation: buyer id, quantity, order number, entry (JSON)
-- Returns {gate, epoch, now ms, units left, outbox id ('' = none), verdicts, detail…}; no verdicts
--       unless the gate is 0. The verdicts are one digit for each reservation. Those marked with +
--       have a detail, in order:
--       0 taken   1+ path used before (sn)   2 wrong path   3 too early   4 too late
--       5+ over the limit (sn sn …)   6+ too few (units left)   7 malformed quantity
local TAKEN, REPEATED, WRONG_PATH, TOO_EARLY, TOO_LATE = '0', '1', '2', '3', '4'
local OVER_LIMIT, TOO_FEW, MALFORMED = '5', '6', '7'
local sale, buyers, pending, outbox = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local max_backlog, keep = tonumber(ARGV[3]), ARGV[4]
local FIRST_ARG, STRIDE = 5, 4

local s = redis.call('HMGET', sale, 'gate', 'epoch', 'lease', 'status', 'start', 'end', 'limit',
  'avail', 'pend', 'since')
local now = now_ms()
local gate, epoch = gate_of(s[1], s[2], s[3], ARGV[1])
if gate == GATE_OPEN and s[2] ~= ARGV[2] then gate = GATE_EPOCH end
local avail, pend, since = tonumber(s[8]), tonumber(s[9]), tonumber(s[10])
if gate == GATE_OPEN and max_backlog > 0 and pend > 0 and now - since > max_backlog then
  gate = GATE_BACKLOG
end
if gate ~= GATE_OPEN then return {gate, epoch, now, 0, '', ''} end

local window
if s[4] == 'closed' or now >= tonumber(s[6]) then
  window = TOO_LATE
elseif now < tonumber(s[5]) then
  window = TOO_EARLY
end
local limit = tonumber(s[7])
local unused = '@' .. s[2]

local ids = {}
for a = FIRST_ARG, #ARGV, STRIDE do ids[#ids + 1] = ARGV[a] end
local permits = redis.call('MGET', unpack(KEYS, 5))
local had = redis.call('HMGET', buyers, unpack(ids))
-- changes by earlier reservations of this call
local permit_now, had_now = {}, {}
local verdicts, details, memory, entries = {}, {}, {}, {}
local was_pending = pend
local stamp = now .. ':'

for i = 1, #ids do
  local a = FIRST_ARG + (i - 1) * STRIDE
  local buyer, q, sn, entry = ids[i], quantity(ARGV[a + 1]), ARGV[a + 2], ARGV[a + 3]
  local path = KEYS[4 + i]
  local permit = permit_now[path] or permits[i]
  local holding = had_now[buyer] or had[i]
  local held, verdict, detail = held_of(holding), TAKEN, nil
  if permit ~= buyer .. unused then
    verdict = WRONG_PATH
    if permit and string.sub(permit, 1, #buyer + 1) == buyer .. ' ' then
      verdict, detail = REPEATED, string.sub(permit, #buyer + 2)
    end
  elseif window then
    verdict = window
  elseif not q then
    verdict = MALFORMED
  elseif held + q > limit then
    verdict, detail = OVER_LIMIT, numbers_of(holding)
  elseif q > avail then
    verdict, detail = TOO_FEW, avail
  else
    avail, pend = avail - q, pend + q
    permit_now[path] = buyer .. ' ' .. sn
    had_now[buyer] = with_order(holding, held, sn, q)
    memory[#memory + 1] = sn
    memory[#memory + 1] = stamp .. q .. ':' .. entry
    entries[#entries + 1] = entry
  end
  verdicts[i], details[#details + 1] = verdict, detail
end

-- Writes that Redis may refuse for lack of memory come first: a refusal leaves nothing partial.
local id = ''
if #entries > 0 then
  redis.call('HSET', pending, unpack(memory))
  local holdings = {}
  for buyer, holding in pairs(had_now) do
    holdings[#holdings + 1] = buyer
    holdings[#holdings + 1] = holding
  end
  redis.call('HSET', buyers, unpack(holdings))
  id = redis.call('XADD', outbox, '*', 'b', '[' .. table.concat(entries, ',') .. ']')
  if was_pending == 0 then since = now end
  redis.call('HSET', sale, 'avail', avail, 'pend', pend, 'since', since)
  for path, permit in pairs(permit_now) do redis.call('SET', path, permit, 'EX', keep) end
end
return {gate, epoch, now, avail, id, table.concat(verdicts), unpack(details)}
