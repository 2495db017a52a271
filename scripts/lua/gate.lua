-- gate: what every script that spends or grants a sale's units asks first. It is put in front of those scripts.
--
-- A sale is open only while Redis holds the state that was loaded for it, under the master that it was loaded on.
-- The lease is that master's replication id, which changes at every restart and promotion; a server that does not
-- tell it (an embedded one) is given a token of its process instead.
--
-- The sale is a hash:
--   gate    0 open, 2 shut on purpose      epoch   how often it was built       lease   see above
--   status  exposed or closed              start, end   the window, Unix ms     limit   units one buyer may hold
--   total   units put up = avail + pend + sold          since   ms; nothing pending is older, as far as settling goes
--   fence   an epoch that must not be loaded any more: see adopt
--   card    what does not change the selling, as JSON of the Go side
local GATE_OPEN, GATE_MISSING, GATE_SHUT, GATE_LEASE, GATE_EPOCH, GATE_BACKLOG = 0, 1, 2, 3, 4, 5

local function now_ms()
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end

local function lease_of_today(given)
  if given ~= '' then return given end
  return string.match(redis.call('INFO', 'replication'), 'master_replid:(%x+)')
end

-- state, epoch: one of the codes above, and the epoch that Redis has (0 where it has none)
local function gate_of(gate, epoch, lease, given_lease)
  if not epoch then return GATE_MISSING, 0 end
  if gate ~= '0' then return GATE_SHUT, tonumber(epoch) end
  if lease ~= lease_of_today(given_lease) then return GATE_LEASE, tonumber(epoch) end
  return GATE_OPEN, tonumber(epoch)
end

-- a quantity as it must come: a decimal integer of at least 1 (tonumber alone takes 0x10, 1e3 and nan)
local function quantity(s)
  if string.match(s, '^[1-9]%d*$') and #s <= 9 then return tonumber(s) end
  return nil
end
