-- room: helpers that redisstore.New puts, after gate, before join, admit and prepare.
--
-- The room is a hash:
-- lease    lease and epoch of the sale for which the numbers are granted (see prepare)
-- next     the last number handed out    limit   the last one that MySQL granted
-- admitted the last position that was called; numbers and positions begin at 1
-- size     numbers in the draw; absent before the start of the sale
-- digest   of those who joined before    commitment   hash of the seed
-- seed     set when MySQL has the draw; nobody is called before
-- paid     Unix ms up to which the rate's permits are used
-- at       Unix ms of the last call of admit, and life   that call's life of an admission, ms
-- calls    epoch times 2^32, and how often admit ran in it: a later state has more
-- missed   admissions that lapsed        gaps   JSON of ranges of numbers that nobody may have
-- left     how often a number ended before it was called
-- over     1 where nothing is left and nothing can return   held, back   see roomset
-- turns is a sorted set of the admissions that are not used, by the end of each in Unix ms: a number,
-- or b and the id of a buyer who has asked. done is a bitmap of the numbers that wait no more, gap
-- one of the numbers that nobody may have. late is a sorted set of numbers by position, which are
-- called first. used is a set of the buyers who have bought with their last admission.
local IN_LINE, PASSED, LATE, UNKNOWN, EXHAUSTED, OVER_LIMIT = 0, 1, 2, 3, 4, 5

-- room_of returns the state of a room, and freezes the draw of a sale that has started. s has the
-- sale, r the room; answer begins the answer of every script.
local function room_of(sale, room, turns, lease)
  local s = redis.call('HMGET', sale, 'gate', 'epoch', 'lease', 'from', 'until', 'start', 'end',
    'status', 'limit', 'avail', 'pend')
  local r = redis.call('HMGET', room, 'lease', 'next', 'limit', 'admitted', 'size', 'digest', 'seed',
    'commitment', 'paid', 'missed', 'gaps', 'over', 'held', 'back', 'at', 'left', 'life', 'calls')
  local gate, epoch = gate_of(s, lease)
  local now, wanted = now_ms(), (s[3] or '') .. '/' .. epoch
  local state = {gate = gate, epoch = epoch, now = now, wanted = wanted}
  state.ready = gate == GATE_OPEN and r[1] == wanted
  state.limit, state.avail = tonumber(s[9] or 0), tonumber(s[10] or 0)
  state.start, state.finish = tonumber(s[6] or 0), tonumber(s[7] or 0)
  state.selling = s[8] == 'exposed' and now >= state.start and now < state.finish
  state.next, state.granted = tonumber(r[2] or 0), tonumber(r[3] or 0)
  state.admitted, state.size = tonumber(r[4] or 0), tonumber(r[5] or -1)
  state.digest, state.drawn = r[6] or '', r[7]
  state.paid, state.missed = tonumber(r[9] or 0), tonumber(r[10] or 0)
  state.called_at, state.calls = tonumber(r[15] or 0), tonumber(r[18] or 0)
  if state.ready and state.size < 0 and now >= state.start then
    state.size = state.next
    redis.call('HSET', room, 'size', state.size)
  end
  function state.answer()
    return {gate, epoch, now, wanted, r[1] or '', state.avail, tonumber(s[11] or 0),
      state.next, state.granted, state.admitted, state.size, state.digest, r[7] or '', r[8] or '',
      redis.call('ZCARD', turns), state.missed, r[11] or '[]', tonumber(r[12] or 0),
      tonumber(r[13] or 0), tonumber(r[14] or 0), tonumber(r[16] or 0), tonumber(r[17] or 0),
      state.calls}
  end
  return state
end

-- move_turns moves the ends of all admissions.
local function move_turns(turns, by)
  local list = redis.call('ZRANGE', turns, 0, -1, 'WITHSCORES')
  for i = 1, #list, 2 do redis.call('ZADD', turns, list[i + 1] + by, list[i]) end
end

-- has reports whether a bitmap has a number.
local function has(bits, number) return redis.call('GETBIT', bits, number) == 1 end
