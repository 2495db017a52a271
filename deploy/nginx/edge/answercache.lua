-- A cache of the API's denials for a whole sale: sold out, not started, ended. nginx repeats them
-- for a moment to all buyers. It caches answers to /randomPath only, where "sold out" means that no
-- unit is left. A purchase of three units is also denied when two are left.
local answer = require "edge.answer"
local settings = require "site.settings"

local M = {}

local dict = ngx.shared.edge_answers
local match, find, sub, floor, min = string.match, string.find, string.sub, math.floor, math.min
local LONGEST = 1024 -- bytes of an answer that is cached

-- answer sends the cached denial of a goods, if there is one.
function M.answer(goods)
  local text = dict:get(goods)
  if text then
    return answer.raw(409, match(text, '"reason":"([A-Z_]+)"'), text)
  end
end

-- Days from 1970-01-01 to a date of the Gregorian calendar. The algorithm is days_from_civil in
-- Howard Hinnant's "chrono-Compatible Low-Level Date Algorithms".
local function days(y, m, d)
  if m <= 2 then y = y - 1 end
  local era = floor(y / 400)
  local year, month = y - era * 400, m > 2 and m - 3 or m + 9
  local day = floor((153 * month + 2) / 5) + d - 1
  return era * 146097 + year * 365 + floor(year / 4) - floor(year / 100) + day - 719468
end

-- seconds converts an RFC 3339 time in UTC, with or without milliseconds, to seconds since 1970.
local function seconds(text)
  local y, m, d, h, min_, s = match(text, "^(%d%d%d%d)%-(%d%d)%-(%d%d)T(%d%d):(%d%d):(%d%d%.?%d*)Z$")
  if not y then return nil end
  return days(tonumber(y), tonumber(m), tonumber(d)) * 86400 + tonumber(h) * 3600 + tonumber(min_) * 60 + tonumber(s)
end

-- ttl returns for how many seconds nginx may repeat an answer; 0 if it may not.
local function ttl(reason, text)
  local most = settings.known[reason] or 0
  if reason ~= "NOT_STARTED" then return most end
  local start = match(text, '"data":{"startAt":"([^"]+)"')
  local opens = start and seconds(start)
  return opens and min(most, opens - ngx.now()) or 0
end

local function store(goods, text)
  local reason = match(text, '^{"code":409,"reason":"([A-Z_]+)"')
  local last = find(text, '"requestId":"[^"]*"}%s*$')
  if not reason or not last then return end
  local time = ttl(reason, text)
  if time > 0.001 then dict:set(goods, sub(text, 1, last - 1), time) end
end

-- record collects an answer's body, part by part, and does not change it.
function M.record()
  if ngx.status ~= 409 then return end
  local ctx, part, last = ngx.ctx, ngx.arg[1], ngx.arg[2]
  if ctx.body == false or ngx.var.edge_said ~= "" then return end -- nginx's own answer
  ctx.body = (ctx.body or "") .. part
  if #ctx.body > LONGEST then
    ctx.body = false
  elseif last then
    store(ngx.var.edge_goods, ctx.body)
  end
end

return M
