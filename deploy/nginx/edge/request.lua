-- The caller and the goods of a request. Only the API verifies tokens. nginx uses their unverified
-- claims as keys of limits, and to send cached denials, whose content is public at /sales.
local base64 = require "ngx.base64"

local M = {}

local find, match, sub = string.find, string.match, string.sub
local MAX_ID = "9223372036854775807"

-- An id in the API's format: a decimal int64 above 0. Two ids of equal length compare as strings.
local function is_id(text)
  return find(text, "^[1-9]%d*$") and (#text < #MAX_ID or #text == #MAX_ID and text <= MAX_ID)
end

-- goods returns the decoded goodsId of the query, and whether the query has no other parameter. It
-- returns nil if goodsId is missing, repeated or invalid.
function M.goods()
  local args = ngx.req.get_uri_args(10)
  local id = args.goodsId
  if type(id) ~= "string" or not is_id(id) then return nil end
  args.goodsId = nil
  return id, next(args) == nil
end

local MAPPED = string.rep("\0", 10) .. "\255\255" -- ::ffff:0:0/96, IPv4 on a socket of IPv6

-- One subscriber has a whole IPv6 /64, so an IPv6 address counts by its first 8 bytes. An IPv4
-- address counts by its 4 bytes, also where it is mapped into IPv6.
local function address()
  if ngx.var.edge_exempt == "1" then return "" end
  local bytes = ngx.var.binary_remote_addr
  if sub(bytes, 1, #MAPPED) == MAPPED then return sub(bytes, #MAPPED + 1) end
  if #bytes == 16 then return sub(bytes, 1, 8) end
  return bytes
end

-- token returns the token that the API verifies: the bearer token, or the session's cookie of a
-- request without an Authorization header (internal/httpapi/sessions.go).
local function token()
  local var = ngx.var
  local header = var.http_authorization
  if header then return match(header, "^[Bb][Ee][Aa][Rr][Ee][Rr] +(.*)$") end
  return var[var.edge_scheme == "https" and "cookie___Host-session" or "cookie_session"]
end

-- claims returns a token's unverified payload, and its signature.
local function claims()
  local text = token()
  if not text or #text > 4096 then return nil end
  local payload, signature = match(text, "^[%w_-]+%.([%w_-]+)%.([%w_-]+)$")
  return payload and base64.decode_base64url(payload), signature
end

-- identify sets the keys of the zones. JSON escapes quotes inside a claim's text, so a pattern with
-- quotes cannot match inside a name.
function M.identify()
  local var, ctx = ngx.var, ngx.ctx
  var.edge_address = address()
  local payload, signature = claims()
  if not payload then return end
  local id = match(payload, '"sub"%s*:%s*"([^"\\]+)"')
  if not id or #id > 64 or find(id, "[^!-~]") then return end
  ctx.user = id .. ":" .. sub(signature, -16)
  var.edge_user = ctx.user
  ctx.role = match(payload, '"role"%s*:%s*"(%a+)"')
  ctx.expires = tonumber((match(payload, '"exp"%s*:%s*(%d+)')))
end

-- is_buyer returns whether the token claims to be a buyer's and to be unexpired. It returns false
-- for calls whose method or body the API refuses. The API then answers, and names the problem.
function M.is_buyer()
  local ctx, var = ngx.ctx, ngx.var
  local method = var.request_method
  return ctx.role == "buyer" and ctx.expires and ctx.expires > ngx.time() + 1 and
    (method == "GET" or method == "POST") and (var.content_length or "0") == "0" and not var.http_transfer_encoding
end

-- Keys of the shared limits, as RedisKey in internal/ratelimit/rules/key.go makes them for buckets.
local function hex(bytes)
  return (string.gsub(bytes, ".", function(c) return string.format("%02x", string.byte(c)) end))
end

local keys = {}

function keys.goods() return ngx.var.edge_goods end
function keys.all() return "all" end
function keys.user() return ngx.ctx.user or "" end

function keys.address()
  local bytes = ngx.var.edge_address
  if bytes == "" then return "" end
  if #bytes == 4 then return string.format("%d.%d.%d.%d", string.byte(bytes, 1, 4)) end
  return hex(bytes) .. "/64"
end

-- counts_by returns whether limits can count by the given key.
function M.counts_by(by) return keys[by] ~= nil end

-- key returns the Redis key of a rule for this request, or nil if the request has no such key.
function M.key(rule)
  local part = keys[rule.by]()
  if part == "" then return nil end
  if rule.by == "goods" then return "{" .. part .. "}:ratelimit:" .. rule.rule .. ":" .. part end
  return "ratelimit:{" .. rule.rule .. ":" .. part .. "}"
end

return M
