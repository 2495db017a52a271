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
-- missed   admissions that lapsed        gaps   JSON of ranges of numbers that possibly nobody has
-- left     how often a number was left, was replaced by a ticket's, or was taken again
-- over     1 where nothing is left and nothing can return   held, back   see roomset
-- turns is a sorted set of the admissions that are not used, by the end of each in Unix ms: a
-- number, or b and the id of a buyer who has asked. done is a bitmap of the numbers that wait no
-- more, gap one of the numbers that possibly nobody has. late is a sorted set of numbers by
-- position, which are called first. used is a set of the buyers who have bought with their last
-- admission.
local IN_LINE, PASSED, LATE, UNKNOWN, EXHAUSTED, OVER_LIMIT = 0, 1, 2, 3, 4, 5

-- room_of returns the state of a room, and freezes the draw of a sale that has started. It reads
-- only what every script needs, because each group of joins pays for each field.
local function room_of(sale, room, lease)
  local s = redis.call('HMGET', sale, 'gate', 'epoch', 'lease', 'from', 'until', 'start', 'avail',
    'pend')
  local r = redis.call('HMGET', room, 'lease', 'next', 'limit', 'admitted', 'size', 'digest',
    'seed', 'commitment', 'over')
  local gate, epoch = gate_of(s, lease)
  local now, wanted = now_ms(), (s[3] or '') .. '/' .. epoch
  local ready, next, size = gate == GATE_OPEN and r[1] == wanted, tonumber(r[2] or 0), r[5]
  if ready and not size and now >= tonumber(s[6]) then
    size = next
    redis.call('HSET', room, 'size', size)
  end
  return {
    gate = gate, epoch = epoch, now = now, wanted = wanted, ready = ready, start = s[6],
    avail = s[7] or 0, pend = s[8] or 0, lease = r[1] or '', next = next,
    granted = tonumber(r[3] or 0), admitted = r[4] or 0, size = size, digest = r[6] or '',
    seed = r[7], commitment = r[8] or '', over = r[9] == '1',
  }
end

-- answer_of returns the answer of join, and the beginning of the others. It checks over against the
-- units, because a worker that slept may set it after units were added.
local function answer_of(state, turns)
  local over = state.over and state.avail + state.pend + redis.call('ZCARD', turns) == 0
  return {state.gate, state.epoch, state.now, state.wanted, state.lease, state.avail, state.pend,
    state.next, state.granted, state.admitted, state.size or -1, state.digest, state.seed or '',
    state.commitment, over and 1 or 0}
end

-- details_of returns an answer with the fields that no buyer's place needs.
local function details_of(state, room, turns)
  local r = redis.call('HMGET', room, 'missed', 'gaps', 'held', 'back', 'left', 'life', 'calls')
  local answer = answer_of(state, turns)
  for _, field in ipairs({redis.call('ZCARD', turns), r[1] or 0, r[2] or '[]', r[3] or 0, r[4] or 0,
    r[5] or 0, r[6] or 0, r[7] or 0}) do answer[#answer + 1] = field end
  return answer
end

-- move_turns moves the ends of all admissions.
local function move_turns(turns, by)
  local list = redis.call('ZRANGE', turns, 0, -1, 'WITHSCORES')
  for i = 1, #list, 2 do redis.call('ZADD', turns, list[i + 1] + by, list[i]) end
end

-- has reports whether a bitmap has a number.
local function has(bits, number) return redis.call('GETBIT', bits, number) == 1 end
