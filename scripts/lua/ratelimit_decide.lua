-- ratelimit_decide: decides a list of requests for permits, in order, in one call.
--
-- Adjacent requests with the same group number are admitted together or not at
-- all. Several requests may name one key: each sees the permits that the one
-- before took. All numbers are whole and below 2^53, where the doubles of
-- Lua 5.1 are exact. internal/ratelimit (params.go, bucket.go, window.go) is the
-- same arithmetic in Go and explains it.
--
-- KEYS[i]   the limiter of request i, a Redis string. In a cluster all keys of a
--           call share a hash tag.
-- ARGV[1]   now, µs since the epoch; '' for Redis' own clock (tests pass it)
-- ARGV      then eleven for each request:
--   group     a number
--   op        't' take, 'p' peek (takes nothing), 'r' refund
--   kind      'b' bucket, 'g' Guava's bursty, 'f' fixed window, 'w' sliding,
--             'l' log
--   n         permits, 1 or more
--   least     permits that suffice, 1 to n
--   wait      longest wait, µs (take, peek). Of a refund: when the permits were
--             taken, µs (windows), or now + reset of that answer (buckets)
--   cost      ticks per permit; windows: the interval, ms; a log: µs
--   scale     ticks per µs
--   free      level in ticks up to which no wait is needed; windows: the limit
--   cap       highest level in ticks
--   max       most permits of one request
-- The short form takes from one bucket. What is missing at its end is free, 1, 1 and Redis' clock.
--   KEYS[1]   the limiter
--   ARGV[1]   ' ', scale, cost and free with 16 digits each, ' '
--   ARGV[2]   highest level in ticks for the caller's longest wait, below 2^51
--   ARGV[3], ARGV[4]  n, least
--   ARGV[5]   now
-- Returns   now in µs, then six integers for each request:
--   verdict   0 denied, 1 allowed, 2 never: least permits are more than it ever grants
--   granted   permits taken
--   wait      µs until they are good
--   remaining permits that are available without a wait
--   retry     µs until least permits can be admitted, when denied
--   reset     µs until the limiter is full again
--
-- Values    'b tat r scale written' a bucket, paid for at tat + r/scale µs ·
--           'f start count' µs · 'w start interval count last' ms · 'l newest'
--           and for each admission, the oldest first, ' age' or ' age:permits',
--           with the age at newest in µs. An unreadable value counts as missing.
--           Of a bucket, scale has more numbers of 16 digits at its end: cost and
--           free, and where a change of these made them differ from the level, the
--           ticks taken and their share of the burst. Then, after the clock has
--           stepped back, the latest time that it had, and after it the permits
--           taken that do not fit into ticks. Older scripts read one large number,
--           as another scale.
-- Expiry    the time to full, so that a missing key and a full limiter are the
--           same, after the latest time of a clock that has stepped back. Guava's
--           starts empty, and is kept a day longer.

local TEST_EXTRA_MS = 600000
local WAITED = '4503599627370496' -- longer than any wait
local MAX_TICKS = 2251799813685248
local argv, now, extra = ARGV, nil, 0

-- The short form. The rules are those of bucket.take below. A short way decides a bucket that is
-- new, or that the same params wrote before this moment. It calls few functions and formats few
-- numbers, because these are most of its cost: a - a % b divides, the params are compared as text,
-- and the written moment and the expiry are pieces of texts. Redis drops the key in the
-- millisecond after tat.
if not argv[12] and KEYS[1] then
  local params, key, string, tonumber, call = argv[1], KEYS[1], string, tonumber, redis.call
  local sub, seconds, micros = string.sub, nil, nil
  local scale, cost = sub(params, 2, -34) + 0, tonumber(sub(params, -33, -18))
  local free = tonumber(sub(params, -17, -2))
  local most, n, least = (argv[2] or free) + 0, (argv[3] or 1) + 0, (argv[4] or 1) + 0
  if argv[5] then
    now, extra = tonumber(argv[5]), TEST_EXTRA_MS
  else
    local time = call('TIME')
    seconds, micros = time[1], time[2]
    now = seconds * 1000000 + micros
  end
  local text, d, r = redis.pcall('GET', key), 0, 0
  local same = not text
  if type(text) == 'string' then -- 'b ', 16 digits, ' ', r, params, written
    local from, to = string.find(text, params, 20, true)
    if from then
      local tat, rest, written = tonumber(sub(text, 3, 18)), 0, tonumber(sub(text, to + 1))
      if scale > 1 then rest = tonumber(sub(text, 19, from - 1)) end
      same = tat and rest and written and written <= now
      if same and tat >= now then d, r = tat - now, rest end
    end
  end
  if same then
    local verdict, granted, wait, retry = 1, n, 0, 0
    local room = most - d * scale - r
    if n * cost > room then granted = (room - room % cost) / cost end
    if granted < least then
      verdict, granted = 2, 0
      if least * cost <= most then
        local up = least * cost - room + scale - 1
        verdict, retry = 0, (up - up % scale) / scale
      end
    else
      local ticks = r + granted * cost
      local up = d * scale + ticks - free + scale - 1
      if up >= scale then wait = (up - up % scale) / scale end
      r = ticks % scale
      d = d + (ticks - r) / scale
    end
    local full, left, remaining = d, free - d * scale - r, 0
    if r > 0 then full = d + 1 end
    if left > 0 then remaining = (left - left % cost) / cost end
    if verdict == 1 then
      local value = string.format(scale > 1 and 'b %d %d' or 'b %d 0', now + d, r)
      if seconds then
        if #micros < 6 then micros = sub('000000', #micros + 1) .. micros end
        value = value .. params .. seconds .. micros
        call('SET', key, value, 'PXAT', sub(value, 3, 15))
      else
        value = value .. params .. argv[5]
        call('SET', key, value, 'PX', math.floor(full / 1000) + 2 + extra)
      end
    end
    return { now, verdict, granted, wait, remaining, retry, full }
  end
  argv = { argv[5] or '', '0', 't', 'b', argv[3] or '1', argv[4] or '1', WAITED, cost, scale, free,
    argv[2] or free, '0' }
end

local floor, ceil = math.floor, math.ceil
if not now then
  now, extra = tonumber(argv[1]), TEST_EXTRA_MS
  if not now then
    local time = redis.call('TIME')
    now, extra = time[1] * 1000000 + time[2], 0
  end
end

local max, min = math.max, math.min
local STRIDE = 11
local BACK_STEP = 100000
local MAX_SWING = 60000000
local DENIED, ALLOWED, NEVER = 0, 1, 2
local BURSTY_EXTRA_MS = 86400000
local now_ms = floor(now / 1000)

local function div(a, b) return floor(a / b) end
local function up(a, b) return ceil(a / b) + 0 end -- + 0: no minus zero

-- The bucket (GCRA): its level is d µs and r ticks ahead of the clock.
local bucket = { tag = 'b' }

local function limited(a, b, most)
  if a > div(most, b) then return most end
  return a * b
end

-- over: µs by which the level is above free ticks.
local function over(s, free, scale)
  local n = s.d - div(free, scale)
  if s.r > free % scale then n = n + 1 end
  return max(0, n)
end

local function scaled(n, to, from) return ceil(n / max(1, from) * to) end

-- counted keeps ticks at or below MAX_TICKS. beyond is the number of permits that do not fit into
-- ticks. counted adds as many of them to ticks as fit, and returns both.
local function counted(t, ticks, beyond)
  local permits = min(beyond, div(MAX_TICKS - ticks, t.cost))
  return ticks + permits * t.cost, beyond - permits
end

-- level_of is the state of a level whose permits were all taken under the params t.
local function level_of(t, d, r)
  local ticks = limited(d, t.scale, 2 * MAX_TICKS) + r
  local taken, beyond = counted(t, ticks, 0)
  return { d = d, r = r, taken = taken, beyond = beyond, share = min(MAX_TICKS, ticks) }
end

-- convert expresses the level s of the params 'from' in those of t. The number of permits taken and
-- their share of the burst stay, and the time of waits that callers were promised.
local function convert(t, s, from)
  if t.kind == 'g' then -- Guava keeps the time
    local r = scaled(s.r, t.scale, from.scale)
    return level_of(t, s.d + div(r, t.scale), r % t.scale)
  end
  local wait = over(s, from.free, from.scale)
  local waiting, stays = limited(wait, from.scale, MAX_TICKS), limited(wait, t.scale, MAX_TICKS)
  -- The wait is rounded up, and no part of a permit taken may count as a wait.
  if wait > 0 then waiting = waiting - (from.free - s.r) % from.scale end
  local taken, beyond = counted(from, s.taken - waiting, s.beyond)
  local share = max(0, s.share - waiting)
  taken = max(0, taken)
  taken, beyond = counted(t, scaled(taken % from.cost, t.cost, from.cost),
    beyond + div(taken, from.cost))
  if from.cost ~= t.cost or from.scale ~= t.scale then
    share = scaled(min(from.free, share), t.free, from.free)
  end
  local most = max(share, taken)
  if beyond > 0 then most = t.free end
  local ticks = min(t.free, most)
  taken, beyond = counted(t, taken + stays, beyond)
  return { d = div(ticks, t.scale) + wait, r = ticks % t.scale,
    taken = taken, beyond = beyond, share = min(MAX_TICKS, share + stays) }
end

-- unpacked reads the numbers in a value's scale. An older script's has none but the scale.
local function unpacked(text)
  local at, numbers = #text, {}
  while at > 16 do
    table.insert(numbers, 1, tonumber(string.sub(text, at - 15, at)))
    at = at - 16
  end
  return { scale = tonumber(string.sub(text, 1, at)), cost = numbers[1], free = numbers[2],
    taken = numbers[3], share = numbers[4], seen = numbers[5] or 0, beyond = numbers[6] or 0 }
end

-- shift_of: µs by which a state moves with a clock that has stepped.
local function shift_of(from, written)
  if written - now > BACK_STEP then return now - written end
  if from.seen <= written then return 0 end
  return max(0, min(now, from.seen) - written - max(BACK_STEP, up(from.cost, from.scale)))
end

function bucket.load(t, text)
  local tat, r, scale, written = string.match(text, '^b (%d+) (%d+) (%d+) (%d+)$')
  if not tat then
    if t.kind == 'g' then return level_of(t, div(t.free, t.scale), t.free % t.scale) end
    return level_of(t, 0, 0)
  end
  tat, r, written = tonumber(tat), tonumber(r), tonumber(written)
  local from = unpacked(scale)
  local shift, seen = shift_of(from, written), from.seen
  if written - now > BACK_STEP then seen = max(seen, written) end
  tat, written = tat + shift, written + shift
  if not from.cost and from.scale ~= t.scale and r > 0 then
    tat, r, from.scale = tat + 1, 0, t.scale
  end
  local d = tat - now
  if d < 0 then d, r = 0, 0 end
  local s = level_of(from.cost and from or t, d, r)
  if from.taken then
    local passed = limited(max(0, now - written), from.scale, MAX_TICKS) -
      limited(max(0, written - now), from.scale, MAX_TICKS)
    -- Time above MAX_TICKS ends whole permits, rounded down.
    local permits = div((now - written) * from.scale - MAX_TICKS, from.cost) - 1
    local beyond = from.beyond - max(0, min(from.beyond, permits))
    s.taken, s.beyond = counted(from, from.taken - passed, beyond)
    s.taken = max(0, s.taken)
    s.share = max(0, min(MAX_TICKS, from.share - passed))
  end
  s.moved = shift ~= 0
  if from.cost and (from.cost ~= t.cost or from.scale ~= t.scale or from.free ~= t.free) then
    s = convert(t, s, from)
    s.moved, s.changed = true, true
  end
  s.seen = seen
  return s
end

function bucket.store(t, s)
  local level, ahead, more = level_of(t, s.d, s.r), max(0, (s.seen or 0) - now), ''
  if ahead > MAX_SWING then ahead = 0 end
  if t.kind == 'b' and level.taken == 0 and s.taken == 0 and ahead == 0 then return nil end
  if ahead > 0 or s.taken ~= level.taken or s.share ~= level.share or s.beyond ~= level.beyond then
    more = string.format('%016.0f%016.0f', s.taken, s.share)
    if s.beyond > 0 then
      more = more .. string.format('%016.0f%016.0f', ahead > 0 and s.seen or 0, s.beyond)
    elseif ahead > 0 then
      more = more .. string.format('%016.0f', s.seen)
    end
  end
  local drained = min(MAX_TICKS, up(s.taken + s.beyond * t.cost, t.scale))
  return string.format('b %.0f %.0f %.0f%016.0f%016.0f%s %.0f', now + s.d, s.r, t.scale, t.cost,
    t.free, more, now), max(over(s, 0, t.scale), drained) + ahead,
    t.kind == 'g' and BURSTY_EXTRA_MS or 0
end

local function fitting(t, s, most)
  if s.d > div(most, t.scale) then return 0 end
  return div(max(0, most - s.d * t.scale - s.r), t.cost)
end

function bucket.describe(t, s) return fitting(t, s, t.free), over(s, 0, t.scale) end

function bucket.take(t, s)
  local most = t.cap
  if t.wait < up(t.cap - t.free, t.scale) then most = t.free + t.wait * t.scale end
  local added, fits, largest = 1, fitting(t, s, most), div(most, t.cost)
  if t.kind == 'g' then
    added, fits, largest = 0, 0, t.max
    if s.d + up(s.r - most, t.scale) <= 0 then fits = largest end
  end
  local granted = min(t.n, fits)
  if granted < t.least then
    if t.least > largest then return NEVER, 0, 0, 0 end
    return DENIED, 0, 0, s.d + up(s.r + added * t.least * t.cost - most, t.scale)
  end
  local wait = max(0, s.d + up(s.r + added * granted * t.cost - t.free, t.scale))
  local ticks = s.r + granted * t.cost
  s.d, s.r = s.d + div(ticks, t.scale), ticks % t.scale
  s.taken, s.beyond = counted(t, s.taken + granted * t.cost, s.beyond)
  s.share = min(MAX_TICKS, s.share + granted * t.cost)
  return ALLOWED, granted, wait, 0
end

-- refundable: ticks of permits that come back. While callers wait, later permits stand on those
-- before them, so that only the last ones do.
local function refundable(t, s)
  local ahead = t.wait - now
  if over(s, 0, t.scale) <= ahead then return MAX_TICKS end
  if over(s, t.free, t.scale) > 0 then return 0 end
  if t.scale > 1 then ahead = ahead - 2 end
  return limited(max(0, ahead), t.scale, MAX_TICKS)
end

function bucket.refund(t, s)
  local ticks = min(t.n * t.cost, refundable(t, s))
  s.d, s.r = s.d - div(ticks, t.scale), s.r - ticks % t.scale
  if s.r < 0 then s.d, s.r = s.d - 1, s.r + t.scale end
  if s.d < 0 then s.d, s.r = 0, 0 end
  s.taken, s.beyond = counted(t, s.taken - ticks, s.beyond)
  s.taken, s.share = max(0, s.taken), max(0, s.share - ticks)
end

-- A call that has only buckets does not pay for the windows' functions.
local function windows()
  -- The fixed window begins with its first request.
  local fixed = { tag = 'f' }

  function fixed.load(t, text)
    local start, count = string.match(text, '^f (%d+) (%d+)$')
    if not start then return { start = now, count = 0 } end
    start, count = tonumber(start), tonumber(count)
    local moved = start - now > BACK_STEP
    if moved then start = now end
    if now - start >= t.cost * 1000 then return { start = now, count = 0 } end
    return { start = start, count = count, moved = moved }
  end

  function fixed.describe(t, s)
    local reset = 0
    if s.count > 0 then reset = s.start + t.cost * 1000 - now end
    return max(0, t.free - s.count), reset
  end

  function fixed.store(t, s)
    if s.count == 0 then return nil end
    return string.format('f %.0f %.0f', s.start, s.count), s.start + t.cost * 1000 - now, 0
  end

  function fixed.take(t, s)
    local granted = min(t.n, t.free - s.count)
    if granted < t.least then
      if t.least > t.free then return NEVER, 0, 0, 0 end
      return DENIED, 0, 0, s.start + t.cost * 1000 - now
    end
    s.count = s.count + granted
    return ALLOWED, granted, 0, 0
  end

  function fixed.refund(t, s)
    local since = t.wait - s.start
    if since >= 0 and since < t.cost * 1000 then s.count = max(0, s.count - t.n) end
  end

  -- The sliding window: the last window's count loses weight as this one passes.
  local sliding = { tag = 'w' }

  function sliding.load(t, text)
    local s = { start = now_ms - now_ms % t.cost, count = 0, last = 0 }
    local start, interval, count, last = string.match(text, '^w (%d+) (%d+) (%d+) (%d+)$')
    if not start then return s end
    start, interval = tonumber(start), tonumber(interval)
    count, last = tonumber(count), tonumber(last)
    local moved = start - now_ms > BACK_STEP / 1000
    if moved then start = now_ms - now_ms % interval end
    if interval ~= t.cost then
      count, last = count + last, 0
      if now_ms - start < interval * 2 then start = s.start end
    end
    if start == s.start then
      s.count, s.last = count, last
    elseif start > now_ms then
      s = { start = start, count = count, last = last }
    elseif start + t.cost == s.start then
      s.last = count
    end
    local most = div(MAX_TICKS, t.cost)
    s.count, s.last, s.moved = min(s.count, most), min(s.last, most), moved
    return s
  end

  local function left_of(t, s) return t.cost - max(0, now_ms - s.start) end

  -- in_us: from now until ms after the start of this millisecond, or later if the
  -- clock is before the window.
  local function in_us(s, ms) return 1000 * (ms + max(0, s.start - now_ms)) - now % 1000 end

  function sliding.describe(t, s)
    local left, reset = left_of(t, s), 0
    if s.count > 0 then
      reset = in_us(s, left + t.cost)
    elseif s.last > 0 then
      reset = in_us(s, left)
    end
    return div(max(0, t.free * t.cost - s.last * left - s.count * t.cost), t.cost), reset
  end

  function sliding.store(t, s)
    local _, reset = sliding.describe(t, s)
    if reset == 0 then return nil end
    return string.format('w %.0f %.0f %.0f %.0f', s.start, t.cost, s.count, s.last), reset, 0
  end

  function sliding.take(t, s)
    local left = left_of(t, s)
    local used = s.last * left + s.count * t.cost
    local granted = min(t.n, div(max(0, t.free * t.cost - used), t.cost))
    if granted < t.least then
      if t.least > t.free then return NEVER, 0, 0, 0 end
      local room = (t.free - s.count - t.least) * t.cost
      if room >= 0 then return DENIED, 0, 0, in_us(s, left - div(room, s.last)) end
      return DENIED, 0, 0, in_us(s, left + t.cost - div((t.free - t.least) * t.cost, s.count))
    end
    s.count = s.count + granted
    return ALLOWED, granted, 0, 0
  end

  function sliding.refund(t, s)
    local since = floor(t.wait / 1000) - s.start
    if since >= 0 and since < t.cost then
      s.count = max(0, s.count - t.n)
    elseif since < 0 and since >= -t.cost then
      s.last = max(0, s.last - t.n)
    end
  end

  -- The log: every admission of the last interval.
  local log = { tag = 'l' }

  function log.load(t, text)
    local s = { now = now, newest = now, count = 0 }
    local newest, entries = string.match(text, '^l (%d+)([ %d:]*)$')
    if not newest then return s end
    newest = tonumber(newest)
    s.moved = newest - now > BACK_STEP
    if s.moved then newest = now end
    s.now, s.newest = max(now, newest), newest
    for age, n in string.gmatch(entries, ' (%d+):?(%d*)') do
      local at, permits = newest - tonumber(age), tonumber(n) or 1
      if at > s.now - t.cost then
        s[#s + 1] = { at = at, n = permits }
        s.count = s.count + permits
      end
    end
    return s
  end

  function log.describe(t, s)
    local reset = 0
    if #s > 0 then reset = s[#s].at + t.cost - s.now end
    return max(0, t.free - s.count), reset
  end

  function log.store(t, s)
    if #s == 0 then return nil end
    local parts = { string.format('l %.0f', s.newest) }
    for i, e in ipairs(s) do
      parts[i + 1] = string.format(e.n == 1 and '%.0f' or '%.0f:%.0f', s.newest - e.at, e.n)
    end
    local _, reset = log.describe(t, s)
    return table.concat(parts, ' '), reset, 0
  end

  function log.take(t, s)
    local granted = min(t.n, t.free - s.count)
    if granted < t.least then
      if t.least > t.free then return NEVER, 0, 0, 0 end
      local over = s.count + t.least - t.free
      for _, e in ipairs(s) do
        over = over - e.n
        if over <= 0 then return DENIED, 0, 0, e.at + t.cost - s.now end
      end
    end
    s.newest, s.count = s.now, s.count + granted
    if #s > 0 and s[#s].at >= s.now then
      s[#s].n = s[#s].n + granted
    else
      s[#s + 1] = { at = s.now, n = granted }
    end
    return ALLOWED, granted, 0, 0
  end

  function log.refund(t, s)
    for i, e in ipairs(s) do
      if e.at == t.wait then
        local back = min(t.n, e.n)
        e.n, s.count = e.n - back, s.count - back
        if e.n == 0 then table.remove(s, i) end
        return
      end
    end
  end

  return { f = fixed, w = sliding, l = log }
end

local kinds = { b = bucket, g = bucket }

local function algorithm_of(kind)
  if not kinds[kind] then
    local more = windows()
    kinds.f, kinds.w, kinds.l = more.f, more.w, more.l
  end
  return kinds[kind]
end

local function whole(text)
  if not text or not string.match(text, '^%d+$') then
    error('ratelimit_decide: not a whole number: ' .. tostring(text))
  end
  return tonumber(text)
end

local function read_request(i)
  local a = 2 + (i - 1) * STRIDE
  local t = {
    key = KEYS[i], group = argv[a], op = argv[a + 1], kind = argv[a + 2],
    n = whole(argv[a + 3]), least = whole(argv[a + 4]), wait = tonumber(argv[a + 5]),
    cost = tonumber(argv[a + 6]), scale = tonumber(argv[a + 7]), free = tonumber(argv[a + 8]),
    cap = tonumber(argv[a + 9]), max = tonumber(argv[a + 10]),
  }
  t.algorithm = algorithm_of(t.kind)
  if not t.algorithm or t.n < 1 or t.least < 1 or t.cost < 1 or t.scale < 1 then
    error('ratelimit_decide: request ' .. i .. ' is malformed')
  end
  return t
end

-- stored: the values in Redis; changed: the last write of each key.
local stored, changed = {}, {}

local function text_of(key)
  local text = stored[key]
  if text == nil then
    text = redis.pcall('GET', key)
    if type(text) ~= 'string' then text = '' end -- missing, or of another type
    stored[key] = text
  end
  return text
end

local function encode(t, s)
  local text, full, more = t.algorithm.store(t, s)
  return { key = t.key, text = text or '', full = full or 0, extra = more or 0 }
end

local function commit(write)
  stored[write.key], changed[write.key] = write.text, write
end

-- Each request reads the value that the one before it left, so that two requests of
-- one call with different limits behave like two calls.
local function decide(t, texts)
  local text = texts[t.key] or text_of(t.key)
  local s, mine = t.algorithm.load(t, text), string.sub(text, 1, 1) == t.algorithm.tag
  if t.op == 'r' and s.changed then mine = false end -- taken under another limit
  -- Another clock or limit: store the moved state even if this request is denied. Else the
  -- limiter would not drain until the new clock reaches the old one, or at the old rate.
  if s.moved and mine and t.op ~= 'p' and not texts[t.key] then commit(encode(t, s)) end
  local verdict, granted, wait, retry = ALLOWED, 0, 0, 0
  local before, reset_before
  if t.op == 'p' then before, reset_before = t.algorithm.describe(t, s) end
  if t.op == 'r' then
    if mine then t.algorithm.refund(t, s) end -- a lost limiter owes nothing
  else
    verdict, granted, wait, retry = t.algorithm.take(t, s)
  end
  local remaining, reset = t.algorithm.describe(t, s)
  if t.op == 'p' then
    remaining, reset = before, reset_before
  elseif verdict == ALLOWED and (t.op == 't' or mine) then
    local write = encode(t, s)
    texts[t.key], texts[#texts + 1] = write.text, write
  end
  return verdict, granted, wait, remaining, retry, reset
end

local answer, i = { now }, 1
while i <= #KEYS do
  local group, texts, together = argv[2 + (i - 1) * STRIDE], {}, true
  while i <= #KEYS and argv[2 + (i - 1) * STRIDE] == group do
    local verdict, granted, wait, remaining, retry, reset = decide(read_request(i), texts)
    together = together and verdict == ALLOWED
    local at = #answer
    answer[at + 1], answer[at + 2], answer[at + 3] = verdict, granted, wait
    answer[at + 4], answer[at + 5], answer[at + 6] = remaining, retry, reset
    i = i + 1
  end
  if together then
    for _, write in ipairs(texts) do commit(write) end
  end
end

for key, write in pairs(changed) do
  if write.text == '' then
    redis.call('DEL', key)
  else
    local life = ceil(write.full / 1000) + 1 + write.extra + extra
    redis.call('SET', key, write.text, 'PX', string.format('%.0f', life))
  end
end
return answer
