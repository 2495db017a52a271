-- The functions that server.conf calls, one for each phase of a request.
local answer = require "edge.answer"
local answercache = require "edge.answercache"
local request = require "edge.request"
local shared = require "edge.shared"

local M = {}

-- enter sets the keys that limit_req counts by.
M.enter = request.identify

-- enter_room is enter for a waiting room. Readings of its status have no key but the server. The API
-- ignores the two headers. nginx would answer 412 from its cache, in HTML.
function M.enter_room()
  ngx.req.clear_header("If-Match")
  ngx.req.clear_header("If-Unmodified-Since")
  local method = ngx.var.request_method
  if method ~= "GET" and method ~= "HEAD" then request.identify() end
end

-- enter_path is enter for /randomPath. It answers requests without a goods, and sends a cached
-- denial.
function M.enter_path()
  request.identify()
  local goods, alone = request.goods()
  if not goods then
    return answer.bad_field("goodsId", "must be in the query: a decimal number above 0, once")
  end
  ngx.var.edge_goods = goods
  if alone and request.is_buyer() then answercache.answer(goods) end
end

-- limit checks the limits that all nodes share.
M.limit = shared.limit

-- cache stores the API's answers about a sale.
M.cache = answercache.record

function M.alive()
  answer.send(200, { reason = "OK", message = "ok" })
end

-- limited answers for limit_req, which has no time to wait. One second is the shortest
-- Retry-After.
function M.limited()
  answer.limited(1, '"edge";r=0;t=1', ngx.var.edge_policy)
end

function M.malformed()
  answer.bad_field(ngx.status == 413 and "body" or "request", "is malformed, or larger than is taken")
end

function M.unavailable()
  answer.unavailable("no API answers at the moment; the outcome is unknown")
end

return M
