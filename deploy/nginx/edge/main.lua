-- What server.conf calls, one function for each moment of a request.
local answer = require "edge.answer"
local known = require "edge.known"
local request = require "edge.request"
local shared = require "edge.shared"

local M = {}

-- enter sets the keys that limit_req counts by.
function M.enter()
  request.identify()
end

-- enter_path is enter for /randomPath, which is refused without a goods, and answered where the answer is known.
function M.enter_path()
  request.identify()
  local goods, alone = request.goods()
  if not goods then
    return answer.bad_field("goodsId", "must be in the query: a decimal number above 0, once")
  end
  ngx.var.edge_goods = goods
  if alone and request.is_buyer() then known.answer(goods) end
end

-- limit asks the limits that all nodes share.
function M.limit(route)
  shared.limit(route)
end

-- learn listens to what the API says of a sale.
function M.learn()
  known.learn()
end

function M.alive()
  answer.send(200, { reason = "OK", message = "ok" })
end

-- limited is limit_req's refusal. It does not say how long to wait: a second is the shortest that can be told.
function M.limited()
  answer.limited(1, '"edge";r=0;t=1', ngx.var.edge_policy)
end

function M.malformed()
  answer.bad_field(ngx.status == 413 and "body" or "request", "is malformed, or larger than is taken")
end

function M.unavailable()
  answer.unavailable("nobody can answer this at the moment; its outcome is unknown")
end

return M
