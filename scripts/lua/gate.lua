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

local function current_lease(given)
  if given ~= '' then return given end
  return string.match(redis.call('INFO', 'replication'), 'master_replid:(%x+)')
end

-- gate_of returns one of the codes above and Redis' epoch (0 = none).
local function gate_of(gate, epoch, lease, given_lease)
  if not epoch then return GATE_MISSING, 0 end
  if gate ~= '0' then return GATE_SHUT, tonumber(epoch) end
  if lease ~= current_lease(given_lease) then return GATE_LEASE, tonumber(epoch) end
  return GATE_OPEN, tonumber(epoch)
end

-- quantity returns a decimal integer from 1 to 999,999,999, else nil (tonumber alone accepts 0x10,
-- 1e3 and nan).
local function quantity(s)
  if string.match(s, '^[1-9]%d*$') and #s <= 9 then return tonumber(s) end
  return nil
end
