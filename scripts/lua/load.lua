-- load: begins an epoch of a sale. Where Redis cannot fail over, it opens the gate; elsewhere open
-- does, once MySQL has recorded the opening. It refuses
-- - an epoch that is not newer than Redis', so that a delayed rebuilder cannot restore old state;
-- - an epoch up to the fence (see shut);
-- - any epoch while the gate is open, or was until it ended: a rebuild shuts the gate first, so
--   this gate was opened on another master, and its reservations have not been drained;
-- - other batches than the rebuild has staged: a Redis that was emptied lost them (see stage). The
--   first batch has no orders, so that this holds for a sale without any;
-- - batches that were staged under another lease: a Redis that has restarted since the first batch
--   may have lost a merchant's change, although it still has the batches;
-- - a version of the sale that is older than a merchant's change that Redis has (see update).
-- Pending orders of the old epoch are in MySQL by then (the rebuild waited for its barrier) and are
-- dropped. The outbox stays.
--
-- KEYS  1 sale (hash)   2 staged buyers (hash)   3 buyers (hash)   4 pending (hash)
--       5 moves (set)   6 blocks (hash)
-- ARGV  1 lease ('' = read INFO)   2 epoch   3 status   4 start ms   5 end ms   6 limit   7 total
--       8 available   9 sold   10 card (JSON)   11 number of staged batches
--       12 version of the row   13 whether to open the gate (0, 1)
--       14 whether the sale has a waiting room (0, 1)
-- Returns 1 loaded, 0 refused.
local sale, staged, buyers, pending, moves, blocks = unpack(KEYS)
local has = redis.call('HMGET', sale, 'gate', 'epoch', 'lease', 'from', 'until', 'fence', 'version')
local gate, epoch = gate_of(has, ARGV[1])
local newest = math.max(epoch, tonumber(has[6] or 0))
local found = redis.call('HGET', staged, BATCHES) or '0 '
local batches, staged_on = string.match(found, '^(%d+) (.*)$')
if gate == GATE_OPEN or gate == GATE_EXPIRED or newest >= tonumber(ARGV[2])
  or batches ~= ARGV[11] or not leads(staged_on, ARGV[1])
  or tonumber(has[7] or 0) > tonumber(ARGV[12]) then
  redis.call('UNLINK', staged)
  return 0
end
redis.call('UNLINK', buyers, pending, moves, blocks)
redis.call('HDEL', staged, BATCHES)
if redis.call('EXISTS', staged) == 1 then
  redis.call('RENAME', staged, buyers)
  redis.call('PERSIST', buyers)
end
redis.call('HDEL', sale, 'from', 'until')
redis.call('HSET', sale, 'gate', ARGV[13] == '1' and OPEN or LOADED, 'epoch', ARGV[2],
  'lease', current_lease(ARGV[1]), 'status', ARGV[3], 'start', ARGV[4], 'end', ARGV[5],
  'limit', ARGV[6], 'total', ARGV[7], 'avail', ARGV[8], 'pend', 0, 'sold', ARGV[9], 'since', 0,
  'card', ARGV[10], 'version', ARGV[12], 'room', ARGV[14])
return 1
