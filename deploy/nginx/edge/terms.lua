-- A limit as the script's numbers: internal/ratelimit/terms.go in short, for the buckets that a sale may have. Whatever
-- this does not know, or can't keep exact, is nil, and left to the API to judge.
local M = {}

local floor, max = math.floor, math.max
local MAX_TICKS = 2 ^ 51

local function gcd(a, b)
  while b > 0 do a, b = b, a % b end
  return a
end

-- per_permit gives 1e6/rate µs as cost/scale in lowest terms; the rate is read as the decimal it is written as.
local function per_permit(text)
  local whole, part = string.match(text, "^(%d+)%.?(%d*)$")
  if not whole or #whole + #part > 15 then return nil end
  local cost, scale = 1e6 * 10 ^ #part, tonumber(whole .. part)
  if scale == 0 or cost > MAX_TICKS then return nil end
  local common = gcd(cost, scale)
  return cost / common, scale / common
end

local function checked(t)
  if t.cap > MAX_TICKS then return nil end
  t.most = floor(t.cap / t.cost)
  return t
end

-- bucket of so many permits per second (a decimal, as text), with a burst in permits.
function M.bucket(rate, burst)
  local cost, scale = per_permit(rate)
  if not cost then return nil end
  return checked { kind = "b", cost = cost, scale = scale, free = burst * cost, cap = burst * cost, wait = 0 }
end

-- window of limit requests in so many seconds.
function M.window(limit, seconds)
  return { kind = "f", cost = seconds * 1000, scale = 1, free = limit, cap = limit, most = limit, wait = 0 }
end

-- of_json reads a limit as the API keeps it: a sale's rate, or an operator's.
function M.of_json(text)
  local function number(name) return string.match(text, '"' .. name .. '":(%d[%d.]*)[,}]') end
  local algorithm, rate = string.match(text, '"algorithm":"([a-z_]+)"'), number("permitsPerSecond")
  if not rate or algorithm ~= "reserve" and algorithm ~= "token_bucket" then return nil end
  local cost, scale = per_permit(rate)
  if not cost then return nil end
  local burst, free = tonumber(number("burst") or 0), nil
  if burst > 0 then
    free = burst * cost
  else
    free = max(floor(tonumber(number("maxBurstSeconds") or 0) * 1e6 + 0.5) * scale, cost)
  end
  local wait = algorithm == "reserve" and tonumber(number("maxWaitMillis") or 0) * 1000 or 0
  return checked { kind = "b", cost = cost, scale = scale, free = free, cap = free + wait * scale, wait = wait }
end

-- quota gives RateLimit-Policy's q and w: permits that can be had at once, and the seconds it takes to earn them.
function M.quota(t)
  if t.kind == "f" then return t.free, max(1, math.ceil(t.cost / 1000)) end
  return max(1, floor(t.free / t.cost)), max(1, math.ceil(t.free / t.scale / 1e6))
end

return M
