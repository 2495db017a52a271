-- The envelope of the API's contract. Only this module writes it in nginx.
local settings = require "site.settings"

local M = {}

local ceil, max = math.ceil, math.max

-- The headers that the API puts on every answer (internal/httpapi, safeHeaders).
local function safe_headers(id)
  local h = ngx.header
  h["Content-Type"] = "application/json; charset=utf-8"
  h["Cache-Control"] = "no-store"
  h["X-Content-Type-Options"] = "nosniff"
  h["Content-Security-Policy"] = "default-src 'none'; frame-ancestors 'none'"
  h["Referrer-Policy"] = "no-referrer"
  h["X-Request-ID"] = id
end

local origins = {}
for _, origin in ipairs(settings.origins or {}) do origins[origin] = true end

-- Pages of other sites may read these answers as they may read the API's (internal/httpapi,
-- allowOrigins). The page otherwise sees a failed call, without Retry-After.
local function cors_headers()
  if next(origins) == nil then return end
  local h, origin = ngx.header, ngx.var.http_origin
  h["Vary"] = "Origin"
  if origin and origins[origin] then
    h["Access-Control-Allow-Origin"] = origin
    h["Access-Control-Expose-Headers"] = "Etag, Ratelimit, Ratelimit-Policy, Location, Retry-After, X-Request-Id"
  end
end

-- raw sends an envelope: the given beginning, followed by the requestId.
function M.raw(status, reason, beginning)
  local id = ngx.var.edge_request_id
  local body = beginning .. '"requestId":"' .. id .. '"}'
  ngx.status = status
  safe_headers(id)
  cors_headers()
  ngx.header["Content-Length"] = #body
  ngx.var.edge_said = reason
  ngx.print(body)
  return ngx.exit(ngx.HTTP_OK) -- ends the whole request, not only this phase
end

-- send writes an envelope e of reason, message and data. reason and message contain no character
-- that JSON escapes. data is JSON, or nil for {}.
function M.send(status, e)
  return M.raw(status, e.reason, '{"code":' .. status .. ',"reason":"' .. e.reason .. '","message":"' .. e.message ..
    '","data":' .. (e.data or "{}") .. ",")
end

function M.bad_field(field, problem)
  local data = '{"field":"' .. field .. '","errors":[{"field":"' .. field .. '","message":"' .. problem .. '"}]}'
  return M.send(400, { reason = "BAD_REQUEST", message = field .. ": " .. problem, data = data })
end

-- limited denies the request with Retry-After: seconds, rounded up. limit and policy are the values
-- of RateLimit and RateLimit-Policy.
function M.limited(seconds, limit, policy)
  ngx.header["Retry-After"] = max(1, ceil(seconds))
  if policy and policy ~= "" then
    ngx.header["RateLimit"], ngx.header["RateLimit-Policy"] = limit, policy
  end
  return M.send(429, { reason = "RATE_LIMITED", message = "too many requests" })
end

function M.unavailable(why)
  ngx.header["Retry-After"] = 1
  return M.send(503, { reason = "UNAVAILABLE", message = why })
end

return M
