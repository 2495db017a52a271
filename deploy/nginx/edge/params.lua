-- A limit as the script's numbers, like internal/ratelimit/params.go. This module supports fixed
-- windows, token buckets and the buckets of sales. It returns nil for other limits, and for limits
-- that Lua's numbers cannot represent exactly. The API decides those.
local M = {}

local floor, max = math.floor, math.max
local MAX_TICKS = 2 ^ 51

local function gcd(a, b)
  while b > 0 do a, b = b, a % b end
  return a
end

-- per_permit is 1e6/rate µs as cost/scale in lowest terms. It reads the rate as a decimal.
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
  t.max = floor(t.cap / t.cost)
  return t
end

-- bucket: rate in permits per second (a decimal, as text), burst in permits.
function M.bucket(rate, burst)
  local cost, scale = per_permit(rate)
  if not cost then return nil end
  return checked { kind = "b", cost = cost, scale = scale, free = burst * cost, cap = burst * cost, wait = 0 }
end

-- window: a fixed window of limit requests.
function M.window(limit, seconds)
  return { kind = "f", cost = seconds * 1000, scale = 1, free = limit, cap = limit, max = limit, wait = 0 }
end

-- of_json reads a limit as the API stores it: a sale's rate, or an operator's limit.
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

-- quota is RateLimit-Policy's q and w: the permits available at once, and the seconds in which
-- they accumulate.
function M.quota(t)
  if t.kind == "f" then return t.free, max(1, math.ceil(t.cost / 1000)) end
  return max(1, floor(t.free / t.cost)), max(1, math.ceil(t.free / t.scale / 1e6))
end

return M
