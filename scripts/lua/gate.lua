-- gate: helpers that redisstore.New puts before every script of a sale except update, retire,
-- roomset and counters.
--
-- A sale is open only while Redis holds the state that was loaded for it, on the master that loaded
-- it. The lease is that master's replication id, which changes with every restart and promotion. A
-- server without one (embedded) gets a token of its process instead. Where Redis can fail over, a
-- gate is also open for a limited time only: a master that was replaced without its knowledge sells
-- no longer than that (see open).
--
-- The sale is a hash:
-- gate    0 open, 2 shut by a rebuild, 3 loaded and not yet open (see open)
-- epoch   how often it was built         lease   see above
-- from, until   Unix ms between which the gate is open; absent where Redis cannot fail over
-- status  exposed or closed              start, end   the window, Unix ms   limit   units per buyer
-- total   = avail + pend + sold          since   Unix ms; no pending order is older, unless a newer
--         one was settled before it
-- fence   no epoch up to this one may be loaded (see shut)
-- version of MySQL's row, from which status, window, limit and card are (see update)
-- card    other fields, JSON; admit reads the rate    room    1 where the sale has a waiting room
local GATE_OPEN, GATE_MISSING, GATE_SHUT, GATE_LEASE, GATE_EPOCH, GATE_BACKLOG = 0, 1, 2, 3, 4, 5
local GATE_EXPIRED = 6
local OPEN, SHUT, LOADED = '0', '2', '3' -- values of the field gate
-- The staged holdings have this field beside the buyers. Its value is the number of batches, a
-- space and the lease of the master that took the first batch. No buyer's id is a space.
local BATCHES = ' '

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

-- note_time raises the time before which the gate is not open. A clock that is set back later by
-- more than a tenth of a second shuts the gate.
local function note_time(sale, s, now)
  if s[5] then redis.call('HSET', sale, 'from', math.max(tonumber(s[4]), now - 100)) end
end

-- gate_of returns one of the codes above and Redis' epoch (0 = none) from the values of the fields
-- gate, epoch, lease, from, until.
local function gate_of(s, expected_lease)
  local epoch, till = tonumber(s[2] or 0), s[5]
  if epoch == 0 then return GATE_MISSING, 0 end
  if s[1] ~= OPEN then return GATE_SHUT, epoch end
  if not leads(s[3], expected_lease) then return GATE_LEASE, epoch end
  if till then
    local now = now_ms()
    if now >= tonumber(till) or now < tonumber(s[4]) then return GATE_EXPIRED, epoch end
  end
  return GATE_OPEN, epoch
end

-- Each call runs the whole text of a script, and to define one function costs about 500
-- instructions. A script therefore defines the functions below only when it needs them.

-- A buyer's holding is "held sn:quantity sn:quantity …"; nil or false for a buyer without orders.
-- An ended order stays as "sn:0" until it is pruned, so that its path takes nothing again.
local function holding_functions()
  -- order_in returns the units of an order in a holding, and the bounds of its item; nil if it is
  -- not in there.
  local function order_in(holding, sn)
    local from = holding and string.find(holding, ' ' .. sn .. ':', 1, true)
    if not from then return nil end
    local to = (string.find(holding, ' ', from + 1, true) or #holding + 1) - 1
    return tonumber(string.sub(holding, from + #sn + 2, to)) or 0, from, to
  end

  -- held_of returns the units of a holding, and the text of its orders.
  local function held_of(holding)
    if not holding then return 0, '' end
    local space = string.find(holding, ' ', 1, true) or #holding + 1 -- all its orders may be pruned
    return tonumber(string.sub(holding, 1, space - 1)), string.sub(holding, space)
  end

  -- with_order returns a holding in which an order has the given number of units.
  local function with_order(holding, sn, value)
    local held, orders = held_of(holding)
    local had, from, to = order_in(orders, sn)
    if had then
      held, orders = held - had, string.sub(orders, 1, from - 1) .. string.sub(orders, to + 1)
    end
    return held + value .. orders .. ' ' .. sn .. ':' .. value
  end

  -- path_end_of returns the second at which the path of an order number ends, or the one after. The
  -- first 8 of the number's 35 digits are number / 62^27, and its seconds are number / 2^172 (see
  -- internal/ordersn).
  local function path_end_of(sn)
    local high = 0
    for i = 1, 8 do
      local c = string.byte(sn, i)
      high = high * 62 + (c < 58 and c - 48 or c < 91 and c - 55 or c - 61)
    end
    return math.floor(high * (62 ^ 27 / 2 ^ 172)) + 61
  end

  -- pruned returns a holding without the ended orders whose paths expired more than 5 minutes ago.
  -- The minutes are for a new master, whose clock may be behind. Numbers of earlier releases stay,
  -- because they contain no paths.
  local function pruned(holding, now)
    local KEPT_S, LEN = 300, 35
    return (string.gsub(holding, ' (%w+):0', function(sn)
      if #sn == LEN and now / 1000 - path_end_of(sn) > KEPT_S then return '' end
    end))
  end

  -- end_order ends an order in a buyer's holding. It prunes the holding, and deletes an empty one.
  local function end_order(buyers, buyer, holding, sn, now)
    local rest = pruned(with_order(holding, sn, 0), now)
    if rest == '0' then
      redis.call('HDEL', buyers, buyer)
    else
      redis.call('HSET', buyers, buyer, rest)
    end
  end

  -- numbers_of returns the numbers of the orders that hold units, separated by spaces.
  local function numbers_of(holding)
    local _, orders = held_of(holding)
    orders = string.gsub(orders, ' %w+:0', '')
    return (string.gsub(string.sub(orders, 2), ':%d+', ''))
  end

  return {
    order_in = order_in, held_of = held_of, with_order = with_order, pruned = pruned,
    end_order = end_order, numbers_of = numbers_of,
  }
end

-- A value of pending is "ms:quantity:entry", or "ms:quantity:#block" where the entry is in a block.
-- The hash blocks has two kinds of fields:
-- <name>   the JSON array of up to 32 entries of one call of reserve. The name is
--          "<outbox id>.<place in the call>.<number of entries>".
-- n<name>  how many orders of the block are pending no more; absent before the first
local function pending_functions()
  -- units_of returns the quantity of a pending order.
  local function units_of(order)
    local ms = string.find(order, ':', 1, true)
    return tonumber(string.sub(order, ms + 1, string.find(order, ':', ms + 1, true) - 1))
  end

  -- leave_block counts n orders that were removed from pending, and had this value there. It
  -- deletes a block whose orders are all gone.
  local function leave_block(blocks, order, n)
    local block, size = string.match(order, '^%d+:%d+:#(.+%.(%d+))$')
    if not block then return end
    size = tonumber(size)
    if n < size then n = redis.call('HINCRBY', blocks, 'n' .. block, n) end
    if n >= size then redis.call('HDEL', blocks, block, 'n' .. block) end
  end

  -- promised returns the units that a stock cut or a requeue must leave, so that each admitted
  -- buyer of a waiting room finds one (see admit). The key is not in KEYS, as in reserve.
  local function promised(sale)
    local r = redis.call('HMGET', sale, 'room', 'limit')
    local open = r[1] == '1' and redis.call('ZCARD', sale .. ':turns') or 0
    return open > 0 and (open - 1) * r[2] + 1 or 0
  end

  return {units_of = units_of, leave_block = leave_block, promised = promised}
end
