-- reserve: takes units of one goods for a list of buyers, judging each reservation alone, in order.
--
-- KEYS  1 sale (hash)   2 buyers (hash: buyer -> "held sn:quantity …")
--       3 pending (hash: sn -> "ms:quantity:entry")   4 outbox (stream: b = JSON array of entries)
--       5… the random path of each reservation ("buyer@epoch", once used "buyer sn")
-- ARGV  1 lease ('' = read INFO)   2 the caller's epoch
--       3 age of the oldest pending order at which the gate shuts, ms (0 = never)
--       4 how long a used path is kept, s
--       then for each reservation: buyer id, quantity, order number, entry (JSON)
-- Returns {gate, epoch, now ms, units left, outbox id ('' = none), verdict…}; no verdicts unless
--       the gate is 0. A verdict is one digit and its data:
--       0 taken   1<sn> path used before   2 wrong path   3 too early   4 too late
--       5<sn sn …> over the limit   6<units left> too few   7 malformed quantity
local sale, buyers, pending, outbox = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local lease_arg, epoch_arg = ARGV[1], tonumber(ARGV[2])
local max_backlog, keep = tonumber(ARGV[3]), ARGV[4]
local FIRST_PATH, FIRST_ARG, STRIDE = 5, 5, 4
local n = #KEYS - FIRST_PATH + 1

local s = redis.call('HMGET', sale, 'gate', 'epoch', 'lease', 'status', 'start', 'end', 'limit',
  'avail', 'pend', 'since')
local now = now_ms()
local gate, epoch = gate_of(s[1], s[2], s[3], lease_arg)
if gate == GATE_OPEN and epoch ~= epoch_arg then gate = GATE_EPOCH end
local avail, pend, since = tonumber(s[8]), tonumber(s[9]), tonumber(s[10])
if gate == GATE_OPEN and max_backlog > 0 and pend > 0 and now - since > max_backlog then
  gate = GATE_BACKLOG
end
if gate ~= GATE_OPEN then return {gate, epoch, now, 0, ''} end

local window = '0'
if s[4] == 'closed' or now >= tonumber(s[6]) then
  window = '4'
elseif now < tonumber(s[5]) then
  window = '3'
end
local limit = tonumber(s[7])
local good_now = '@' .. epoch

local paths, ids = {}, {}
for i = 1, n do
  paths[i] = KEYS[FIRST_PATH + i - 1]
  ids[i] = ARGV[FIRST_ARG + (i - 1) * STRIDE]
end
local permits = redis.call('MGET', unpack(paths))
local had = redis.call('HMGET', buyers, unpack(ids))
-- changes by earlier reservations of this call
local permit_now, had_now = {}, {}

local function judge(i)
  local a = FIRST_ARG + (i - 1) * STRIDE
  local buyer, q, sn, entry = ARGV[a], quantity(ARGV[a + 1]), ARGV[a + 2], ARGV[a + 3]
  local permit = permit_now[paths[i]] or permits[i]
  if permit ~= buyer .. good_now then
    local used_by_me = permit and string.sub(permit, 1, #buyer + 1) == buyer .. ' '
    return used_by_me and '1' .. string.sub(permit, #buyer + 2) or '2'
  end
  if window ~= '0' then return window end
  if not q then return '7' end
  local holding, held, sns = had_now[buyer] or had[i], 0, ''
  if holding then held, sns = string.match(holding, '^(%d+)(.*)$') end
  if held + q > limit then return '5' .. string.gsub(string.sub(sns, 2), ':%d+', '') end
  if q > avail then return '6' .. avail end
  avail, pend = avail - q, pend + q
  permit_now[paths[i]] = buyer .. ' ' .. sn
  had_now[buyer] = (held + q) .. sns .. ' ' .. sn .. ':' .. q
  return '0', sn, now .. ':' .. q .. ':' .. entry, entry
end

local was_pending = tonumber(s[9])
local verdicts, memory, entries = {}, {}, {}
for i = 1, n do
  local verdict, sn, remembered, entry = judge(i)
  verdicts[i] = verdict
  if sn then
    memory[#memory + 1], memory[#memory + 2] = sn, remembered
    entries[#entries + 1] = entry
  end
end

-- Writes that Redis may refuse for lack of memory come first: a refusal leaves nothing partial.
local id = ''
if #entries > 0 then
  redis.call('HSET', pending, unpack(memory))
  local holdings = {}
  for buyer, holding in pairs(had_now) do
    holdings[#holdings + 1], holdings[#holdings + 2] = buyer, holding
  end
  redis.call('HSET', buyers, unpack(holdings))
  id = redis.call('XADD', outbox, '*', 'b', '[' .. table.concat(entries, ',') .. ']')
  if was_pending == 0 then since = now end
  redis.call('HSET', sale, 'avail', avail, 'pend', pend, 'since', since)
  for path, permit in pairs(permit_now) do redis.call('SET', path, permit, 'EX', keep) end
end
return {gate, epoch, now, avail, id, unpack(verdicts)}
