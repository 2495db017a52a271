-- reserve: takes units of one goods for a list of buyers, judging each reservation alone, in order.
-- A number in the buyer's holding is the same order again, whatever its status.
--
-- KEYS  1 sale (hash)   2 buyers (hash: buyer -> holding, see gate)
--       3 pending (hash: sn -> "ms:quantity:entry")   4 outbox (stream: b = JSON array of entries)
--         5… (optional) the random paths of the reservations, which an earlier release stored:
--         "buyer@epoch", once used "buyer sn"
-- ARGV  1 lease ('' = read INFO)   2 the caller's epoch
--       3 age of the oldest pending order at which the gate shuts, ms (0 = never)
--       4 how many reservations follow, n
--       5 quantities, 9 digits each ('' = each is 1)   6 ends of the paths, Unix ms, 13 digits each
--       7 the earliest of these ends   8 the latest
--       9 JSON array of the entries, without spaces between them   10 their lengths, 2 bytes each
--       then n buyer ids, n order numbers
-- Returns {gate, epoch, now ms, units left, outbox id ('' = none), verdicts, detail…}; no verdicts
--       unless the gate is 0. The verdicts are one digit for each reservation. Those marked with +
--       have a detail, in order:
--       0 taken   1+ the same order again (sn)   2 expired path   3 too early   4 too late
--       5+ over the limit (sn sn …)   6+ too few (units left)   7 malformed quantity
--       8 the buyer has no admission of the sale's waiting room
local TAKEN, REPEATED, EXPIRED_PATH, TOO_EARLY, TOO_LATE = '0', '1', '2', '3', '4'
local OVER_LIMIT, TOO_FEW, MALFORMED, NOT_ADMITTED = '5', '6', '7', '8'
local HEADER = 10 -- arguments before the first buyer
local sale, buyers, pending, outbox = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
-- The admissions of the sale's waiting room (see room) have the slot of the sale. They are not in
-- KEYS: a slot that migrates serves no script with a key that does not exist, and few sales have it.
local turns = sale .. ':turns'
local FIRST_PATH, USED_PATH_S = 5, 24 * 3600
-- A path lives for 60 s. One that ends later is of another clock: its number could outlive the time
-- for which an ended order is kept (see gate). The rest is for masters whose clocks differ.
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
if gate ~= GATE_OPEN then return {gate, epoch, now, 0, '', ''} end

local window
if s[6] == 'closed' or now >= tonumber(s[8]) then
  window = TOO_LATE
elseif now < tonumber(s[7]) then
  window = TOO_EARLY
end
local limit = tonumber(s[9])

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

local n, quantities, ends = tonumber(ARGV[4]), ARGV[5], ARGV[6]
local numbers = HEADER + n -- before the first order number
local body, lengths, entry_at = ARGV[9], ARGV[10], 2
local function path_expired(i)
  local path_end = tonumber(string.sub(ends, 13 * i - 12, 13 * i))
  return now >= path_end or path_end - now > MAX_PATH_MS
end
local any_expired = now >= tonumber(ARGV[7]) or tonumber(ARGV[8]) - now > MAX_PATH_MS
local had, had_now = redis.call('HMGET', buyers, unpack(ARGV, HEADER + 1, numbers)), {}
local verdicts, details, memory, holdings, entries = {}, {}, {}, {}, {}
local taken, was_pending, has_room, stored_paths = 0, pend, s[13] == '1', #KEYS >= FIRST_PATH
local stamp, q, units = now .. ':', 1, '1'

for i = 1, n do
  local buyer, sn = ARGV[HEADER + i], ARGV[numbers + i]
  local stored_path = stored_paths and KEYS[FIRST_PATH + i - 1]
  if quantities ~= '' then
    q = tonumber(string.sub(quantities, 9 * i - 8, 9 * i))
    units = string.format('%d', q)
  end
  local high, low = string.byte(lengths, 2 * i - 1, 2 * i)
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
  elseif q > avail then
    verdict, detail = TOO_FEW, avail
  else
    local entry = string.sub(body, from, entry_at - 2)
    holding = holding and with_order(holding, sn, units) or units .. ' ' .. sn .. ':' .. units
    verdict, avail, pend, had_now[buyer] = TAKEN, avail - q, pend + q, holding
    -- A buyer who is in the group twice is in holdings twice. HSET keeps the later value.
    local at = 2 * taken
    holdings[at + 1], holdings[at + 2] = buyer, holding
    memory[at + 1], memory[at + 2] = sn, stamp .. units .. ':' .. entry
    taken = taken + 1
    entries[taken] = entry
    if has_room then redis.call('ZREM', turns, 'b' .. buyer) end -- one admission, one order
    if stored_path then used[stored_path] = buyer .. ' ' .. sn end
  end
  verdicts[i] = verdict
  if detail then details[#details + 1] = detail end
end

-- Writes that Redis may refuse for lack of memory come first: a refusal leaves nothing partial.
local id = ''
if taken > 0 then
  redis.call('HSET', pending, unpack(memory))
  redis.call('HSET', buyers, unpack(holdings))
  if taken < n then body = '[' .. table.concat(entries, ',') .. ']' end
  id = redis.call('XADD', outbox, '*', 'b', body)
  if was_pending == 0 then since = now end
  redis.call('HSET', sale, 'avail', avail, 'pend', pend, 'since', since)
  note_time(sale, s, now)
  for key, use in pairs(used) do redis.call('SET', key, use, 'EX', USED_PATH_S) end
end
return {gate, epoch, now, avail, id, table.concat(verdicts), unpack(details)}
