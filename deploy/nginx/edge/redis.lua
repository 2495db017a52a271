-- Calls to Redis over pooled connections, with a deadline for each step. After a failure nginx
-- makes no call for a moment. While Redis is down, only requests that arrive during one call wait.
local settings = require "site.settings".redis

-- OpenResty includes resty.redis. Debian's lua-nginx-redis is the same library under another name.
local found, library = pcall(require, "resty.redis")
if not found then library = require "nginx.redis" end

local M = {}

local dict = ngx.shared.edge_shared

-- hint ends an error's line: which Redis that is, and where its settings are.
local hint = "; check " .. settings.host .. ":" .. settings.port .. " in site/settings.lua, and "
  .. "EDGE_REDIS_PASSWORD, which is " .. ((settings.password or "") == "" and "not set" or "set")

-- failed starts the pause and logs the error: at most one line per second for all workers.
local function failed(what, err)
  dict:set("resting", true, settings.rest)
  if dict:add("logged", true, 1) then ngx.log(ngx.ERR, "edge: redis: ", what, ": ", err, hint) end
  return nil, err
end

local function connect()
  local red = library:new()
  red:set_timeout(settings.timeout_ms)
  local ok, err = red:connect(settings.host, settings.port)
  if not ok then return nil, err end
  if settings.password and settings.password ~= "" and red:get_reused_times() == 0 then
    ok, err = red:auth(settings.password)
    if not ok then return nil, err end
  end
  return red
end

-- with runs use(red). If use returns false or nil, and an error, the connection is closed: also
-- after an answer such as READONLY, because a name may lead to the new master by then.
function M.with(use)
  if dict:get("resting") then return nil, "resting" end
  local red, err = connect()
  if not red then return failed("connect", err) end
  local got
  got, err = use(red)
  if not got then
    red:close()
    return failed("ask", err)
  end
  red:set_keepalive(settings.idle_ms, settings.pool)
  return got
end

return M
