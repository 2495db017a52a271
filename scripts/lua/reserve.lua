-- reserve: takes units of one goods for a list of buyers, judging each reservation alone, in order.
-- A number in the buyer's holding is the same order again, whatever its status.
--
-- KEYS  1 sale (hash)   2 buyers (hash: buyer -> holding, see gate)
--       3 pending (hash, see gate)   4 outbox (stream: b, b1, b2 … = JSON arrays of entries)
--       5 blocks (hash, see gate)
--       6… (optional) the random paths of the reservations, which an earlier release stored:
--         "buyer@epoch", once used "buyer sn"
-- ARGV  1 lease ('' = read INFO)   2 the caller's epoch
--       3 age of the oldest pending order at which the gate shuts, ms (0 = never)
--       4 how many reservations follow, n
--       5 quantities, 9 digits each ('' = each is 1, and no buyer is in the list twice)
--       6 ends of the paths, Unix ms, 13 digits each   7 the earliest of these ends   8 the latest
--       9 lengths of the entries, 2 bytes each
--       then n buyer ids, n order numbers, and the entries in JSON arrays without spaces: 32 in
--       each array, and the rest in the last one.
-- A check has only buyer ids after 9. It takes nothing, and its argument 5 is the largest quantity.
--       Its verdict is 6, without a detail, for a buyer without a holding where no unit is left.
--       Otherwise the verdict is 9, or there are no verdicts: a full call must decide.
-- Returns {gate, epoch, units left, outbox id ('' = none), verdicts, detail…}; no verdicts
--       unless the gate is 0. The verdicts are one digit for each reservation. Those marked with +
--       have a detail, in order:
--       0 taken   1+ the same order again (sn)   2 expired path   3 too early   4 too late
--       5+ over the limit (sn sn …)   6+ too few (units left)   7 malformed quantity
--       8 the buyer has no admission of the sale's waiting room   9 not decided
local TAKEN, REPEATED, EXPIRED_PATH, TOO_EARLY, TOO_LATE = '0', '1', '2', '3', '4'
local OVER_LIMIT, TOO_FEW, MALFORMED, NOT_ADMITTED, UNDECIDED = '5', '6', '7', '8', '9'
local HEADER, BLOCK = 9, 32 -- arguments before the first buyer; entries in an array
local sale, buyers, pending, outbox, blocks = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
-- The admissions of the sale's waiting room (see room) have the slot of the sale. They are not in
-- KEYS: a slot that migrates serves no script with a key that does not exist, and few sales have
-- it.
local turns, used_turns = sale .. ':turns', sale .. ':used'
local FIRST_PATH, USED_PATH_S = 6, 24 * 3600
-- A path lives for 60 s. One that ends later is of another clock: its number could outlive the time
-- for which an ended order is kept (see gate). The other 5 s are for masters whose clocks differ.
local MAX_PATH_MS = 65000
-- A buyer who buys and cancels without end would make one large holding, and every call slow.
local MAX_HOLDING, MAX_ENDED = 8192, 100

local s = redis.call('HMGET', sale, 'gate', 'epoch', 'lease', 'from', 'until', 'status', 'start',
  'end', 'limit', 'avail', 'pend', 'since', 'room')
local now, max_backlog = now_ms(), tonumber(ARGV[3])
local gate, epoch = gate_of(s, ARGV[1])
if gate == GATE_OPEN and s[2] ~= ARGV[2] then gate = GATE_EPOCH end
local avail, pend, since = tonumber(s[10]), tonumber(s[11]), tonumber(s[12])
if gate == GATE_OPEN and max_backlog > 0 and pend > 0 and now - since > max_backlog then
  gate = GATE_BACKLOG
end
if gate ~= GATE_OPEN then return {gate, epoch, 0, '', ''} end

local window
if s[6] == 'closed' or now >= tonumber(s[8]) then
  window = TOO_LATE
elseif now < tonumber(s[7]) then
  window = TOO_EARLY
end
local limit = tonumber(s[9])

local n, quantities, ends = tonumber(ARGV[4]), ARGV[5], ARGV[6]
local numbers = HEADER + n -- before the first order number
local arrays = numbers + n -- before the first array of entries
local any_expired = now >= tonumber(ARGV[7]) or tonumber(ARGV[8]) - now > MAX_PATH_MS
local has_room, stored_paths = s[13] == '1', #KEYS >= FIRST_PATH
local was_pending = pend

-- note_taken writes the numbers of the sale. For lack of memory Redis refuses only the first write
-- of a script, which is one of an order: a refusal leaves nothing partial.
local function note_taken()
  if was_pending == 0 then redis.call('HSET', sale, 'since', now) end
  redis.call('HSET', sale, 'avail', avail, 'pend', pend)
  note_time(sale, s, now)
end

-- The usual call takes one unit for each of its buyers, who hold nothing yet. It needs no verdicts,
-- and its orders share blocks.
local usual = quantities == '' and n <= avail
  and not (window or any_expired or has_room or stored_paths)

-- With one reservation a call's cost is the number of its commands, so HSETNX replaces a read and a
-- write. It also fails where Redis has no memory left. The code below then decides, because the
-- buyer may repeat an order that exists.
if usual and n == 1 then
  local sn, entries = ARGV[numbers + 1], ARGV[arrays + 1]
  if redis.pcall('HSETNX', buyers, ARGV[HEADER + 1], '1 ' .. sn .. ':1') == 1 then
    local id = redis.call('XADD', outbox, '*', 'b', entries)
    -- A block of its own would cost more than the entry.
    redis.call('HSET', pending, sn, now .. ':1:' .. string.sub(entries, 2, -2))
    avail, pend = avail - 1, pend + 1
    note_taken()
    return {gate, epoch, avail, id, TAKEN}
  end
end

local had = redis.call('HMGET', buyers, unpack(ARGV, HEADER + 1, numbers))

if #ARGV == numbers then -- no entries
  local digits = {}
  if not (avail > 0 or window or any_expired or has_room) and tonumber(quantities) <= limit then
    for i = 1, n do digits[i] = had[i] and UNDECIDED or TOO_FEW end -- one may repeat an order
  end
  return {gate, epoch, avail, '', table.concat(digits)}
end

if usual then
  for i = 1, n do
    if had[i] then usual = false break end
  end
end
if usual then
  local added, stored, memory, holdings = {'*', 'b', ARGV[arrays + 1]}, {}, {}, {}
  for k = 2, #ARGV - arrays do
    added[2 * k], added[2 * k + 1] = 'b' .. k - 1, ARGV[arrays + k]
  end
  local id = redis.call('XADD', outbox, unpack(added))
  for k = 1, #ARGV - arrays do
    local first, last = BLOCK * (k - 1) + 1, math.min(BLOCK * k, n)
    local block = string.format('%s.%d.%d', id, k, last - first + 1)
    local order = string.format('%d:1:#%s', now, block)
    stored[2 * k - 1], stored[2 * k] = block, ARGV[arrays + k]
    for i = first, last do
      local sn = ARGV[numbers + i]
      memory[2 * i - 1], memory[2 * i] = sn, order
      holdings[2 * i - 1], holdings[2 * i] = ARGV[HEADER + i], '1 ' .. sn .. ':1'
    end
  end
  redis.call('HSET', blocks, unpack(stored))
  redis.call('HSET', pending, unpack(memory))
  redis.call('HSET', buyers, unpack(holdings))
  avail, pend = avail - n, pend + n
  note_taken()
  return {gate, epoch, avail, id, string.rep(TAKEN, n)}
end

local functions = holding_functions()
local order_in, held_of, with_order = functions.order_in, functions.held_of, functions.with_order
local pruned, numbers_of = functions.pruned, functions.numbers_of

-- path_of returns the verdict on a path that the release before ADR 68 stored, and its order. The
-- release of ADR 68 is the last that needs path_of, used, USED_PATH_S and the optional KEYS.
local used = {}
local function path_of(buyer, key)
  local permit = used[key] or redis.call('GET', key)
  if permit == buyer .. '@' .. s[2] then return nil end
  if permit and string.sub(permit, 1, #buyer + 1) == buyer .. ' ' then
    return REPEATED, string.sub(permit, #buyer + 2)
  end
  return EXPIRED_PATH
end

-- free is how many units one order may take. In a waiting room it leaves one unit for each of the
-- other admitted buyers. admit promises that too, but a merchant may have raised the limit since.
local open = has_room and redis.call('ZCOUNT', turns, '(' .. now, '+inf')
local function free_of_others()
  return math.min(avail, math.max(1, avail - math.max(0, open - 1)))
end
local free = has_room and free_of_others() or avail

local had_now, verdicts, details, memory, holdings, entries = {}, {}, {}, {}, {}, {}
local taken, body, entry_at, stamp, q, units = 0, '', 0, now .. ':', 1, '1'
local function path_expired(i)
  local path_end = tonumber(string.sub(ends, 13 * i - 12, 13 * i))
  return now >= path_end or path_end - now > MAX_PATH_MS
end

for i = 1, n do
  local buyer, sn = ARGV[HEADER + i], ARGV[numbers + i]
  local stored_path = stored_paths and KEYS[FIRST_PATH + i - 1]
  if quantities ~= '' then
    q = tonumber(string.sub(quantities, 9 * i - 8, 9 * i))
    units = string.format('%d', q)
  end
  if i % BLOCK == 1 then body, entry_at = ARGV[arrays + (i - 1) / BLOCK + 1], 2 end
  local high, low = string.byte(ARGV[9], 2 * i - 1, 2 * i)
  local from = entry_at
  entry_at = from + high * 256 + low + 1
  local holding = had_now[buyer] or had[i]
  local verdict, detail
  if holding and order_in(holding, sn) then
    verdict, detail = REPEATED, sn
  elseif stored_path then
    verdict, detail = path_of(buyer, stored_path)
  elseif any_expired and path_expired(i) then
    verdict = EXPIRED_PATH
  end
  verdict = verdict or window
  if not verdict and has_room
    and tonumber(redis.call('ZSCORE', turns, 'b' .. buyer) or 0) <= now then
    verdict = NOT_ADMITTED
  end
  local ended = 0
  if not verdict and holding and #holding > MAX_HOLDING then
    ended = select(2, string.gsub(holding, ':0', ''))
    if ended > MAX_ENDED then
      holding = pruned(holding, now)
      ended = select(2, string.gsub(holding, ':0', ''))
    end
  end
  if verdict then -- decided
  elseif q == 0 then
    verdict = MALFORMED
  elseif ended > MAX_ENDED or (holding and held_of(holding) or 0) + q > limit then
    verdict, detail = OVER_LIMIT, numbers_of(holding)
  elseif q > free then
    verdict, detail = TOO_FEW, free
  else
    local entry = string.sub(body, from, entry_at - 2)
    holding = holding and with_order(holding, sn, units) or units .. ' ' .. sn .. ':' .. units
    verdict, avail, pend, had_now[buyer] = TAKEN, avail - q, pend + q, holding
    -- A buyer who is in this call twice is in holdings twice. HSET keeps the later value.
    local at = 2 * taken
    holdings[at + 1], holdings[at + 2] = buyer, holding
    memory[at + 1], memory[at + 2] = sn, stamp .. units .. ':' .. entry
    taken = taken + 1
    entries[taken] = entry
    free = avail
    if has_room then -- one admission, one order
      redis.call('ZREM', turns, 'b' .. buyer)
      redis.call('SADD', used_turns, buyer)
      open = open - 1
      free = free_of_others()
    end
    if stored_path then used[stored_path] = buyer .. ' ' .. sn end
  end
  verdicts[i] = verdict
  if detail then details[#details + 1] = detail end
end

local id = ''
if taken > 0 then
  redis.call('HSET', pending, unpack(memory))
  redis.call('HSET', buyers, unpack(holdings))
  id = redis.call('XADD', outbox, '*', 'b', '[' .. table.concat(entries, ',') .. ']')
  note_taken()
  for key, use in pairs(used) do redis.call('SET', key, use, 'EX', USED_PATH_S) end
end
return {gate, epoch, avail, id, table.concat(verdicts), unpack(details)}
