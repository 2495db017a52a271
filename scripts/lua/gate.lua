-- gate: helpers that New puts before every script that reserves, issues or returns units.
--
-- A sale is open only while Redis holds the state that was loaded for it, on the master that loaded
-- it. The lease is that master's replication id, which changes with every restart and promotion. A
-- server without one (embedded) gets a token of its process instead.
--
-- The sale is a hash:
-- gate    0 open, 2 shut by a rebuild    epoch   how often it was built    lease   see above
-- status  exposed or closed              start, end   the window, Unix ms   limit   units per buyer
-- total   = avail + pend + sold          since   Unix ms; no pending order is older
-- fence   no epoch up to this one may be loaded (see adopt, shut)
-- card    fields that no script reads, JSON
local GATE_OPEN, GATE_MISSING, GATE_SHUT, GATE_LEASE, GATE_EPOCH, GATE_BACKLOG = 0, 1, 2, 3, 4, 5

local function now_ms()
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end

local function current_lease(expected)
  if expected ~= '' then return expected end
  return string.match(redis.call('INFO', 'replication'), 'master_replid:(%x+)')
end

-- leads reports whether this server still has a lease.
local function leads(lease, expected)
  if expected ~= '' then return lease == expected end
  local info = redis.call('INFO', 'replication')
  return string.find(info, 'master_replid:' .. lease .. '\r', 1, true) ~= nil
end

-- gate_of returns one of the codes above and Redis' epoch (0 = none).
local function gate_of(gate, epoch, lease, expected_lease)
  if not epoch then return GATE_MISSING, 0 end
  if gate ~= '0' then return GATE_SHUT, tonumber(epoch) end
  if not leads(lease, expected_lease) then return GATE_LEASE, tonumber(epoch) end
  return GATE_OPEN, tonumber(epoch)
end

-- quantity returns a decimal integer from 1 to 999,999,999, else nil (tonumber alone accepts 0x10,
-- 1e3 and nan).
local function quantity(s)
  if s == '1' then return 1 end
  if #s <= 9 and string.find(s, '^[1-9]%d*$') then return tonumber(s) end
  return nil
end

-- A buyer's holding is "held sn:quantity sn:quantity …"; nil or false for a buyer without orders.
local function held_of(holding)
  if not holding then return 0 end
  return tonumber(string.sub(holding, 1, string.find(holding, ' ', 1, true) - 1))
end

-- with_order returns a holding with one more order.
local function with_order(holding, held, sn, q)
  local orders = holding and string.sub(holding, string.find(holding, ' ', 1, true)) or ''
  return held + q .. orders .. ' ' .. sn .. ':' .. q
end

-- without_order returns a holding without one of its orders.
local function without_order(holding, rest, sn)
  local from = string.find(holding, ' ' .. sn .. ':', 1, true)
  local orders = string.find(holding, ' ', 1, true)
  if not from then return rest .. string.sub(holding, orders) end
  local after = string.find(holding, ' ', from + 1, true) or #holding + 1
  return rest .. string.sub(holding, orders, from - 1) .. string.sub(holding, after)
end

-- numbers_of returns the order numbers of a holding, separated by spaces.
local function numbers_of(holding)
  if not holding then return '' end
  return (string.gsub(string.sub(holding, string.find(holding, ' ', 1, true) + 1), ':%d+', ''))
end
