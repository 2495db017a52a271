-- The limits that all nodes share, nginx and API. scripts/lua/ratelimit_decide.lua decides them in
-- Redis, by Redis' clock; its header lists arguments and results. The API publishes the script's
-- SHA-1, and nginx runs the script by it, so that there is one version of the script only.
local answer = require "edge.answer"
local redis = require "edge.redis"
local request = require "edge.request"
local settings = require "site.settings"
local params = require "edge.params"

local M = {}

local dict = ngx.shared.edge_shared
local SHA_KEY = "lua:sha1:rate_limiter" -- internal/ratelimit/redis, ScriptKey
local SHA_TTL = 5    -- s; a newer API may publish a newer script
local PARAMS_TTL = 1 -- s; a merchant or an operator may change the rate
local MAX_DENIAL = 1 -- s
local ALLOWED, NEVER = 1, 2
local STRIDE = 6

-- All limits except the sales' are converted at the start. An invalid limit stops nginx's start.
for route, rules in pairs(settings.shared) do
  for _, rule in ipairs(rules) do
    if rule.window then
      rule.params = params.window(rule.window[1], rule.window[2])
    elseif rule.bucket then
      rule.params = params.bucket(tostring(rule.bucket[1]), rule.bucket[2])
    end
    if not request.counts_by(rule.by) or not rule.sale and not rule.params then
      error("site/settings.lua: shared." .. route .. ": " .. tostring(rule.rule) .. " is no limit, or none that can be kept exact", 0)
    end
  end
end

-- sha returns the script's SHA-1 from memory or Redis.
local function sha(red)
  local known = dict:get("sha")
  if known then return known end
  local text, err = red:get(SHA_KEY)
  if text == ngx.null then return nil, "no API has published the script" end
  if not text then return nil, err end
  dict:set("sha", text, SHA_TTL)
  return text
end

-- sale_limit reads the limit of a goods in the API's order (Params in
-- internal/ratelimit/rules/rulebook.go): the operator's for the goods, the sale's own, the
-- operator's for all goods.
local function sale_limit(red, goods)
  red:init_pipeline(2)
  red:hmget("ratelimit:{rules}:overrides", "randomPath " .. goods, "randomPath *")
  red:hget("sk:{" .. goods .. "}", "card")
  local replies, err = red:commit_pipeline()
  if not replies then return nil, err end
  local set, card = replies[1], replies[2]
  local own = type(card) == "string" and string.match(card, '"rate":({[^}]*})')
  local function text(v) return type(v) == "string" and v or nil end
  return text(set[1]) or own or text(set[2]) or ""
end

-- params_of returns a rule's numbers for this request, or false if the API decides the rule.
local function params_of(red, rule)
  if rule.params then return rule.params end
  local goods = ngx.var.edge_goods
  local text = dict:get("limit:" .. goods)
  if not text then
    local err
    text, err = sale_limit(red, goods)
    if not text then return nil, err end
    dict:set("limit:" .. goods, text, PARAMS_TTL)
  end
  return params.of_json(text) or false
end

-- requests_of lists one request to the script for each rule that has a key.
local function requests_of(red, rules)
  local requests = {}
  for _, rule in ipairs(rules) do
    local key = request.key(rule)
    local t, err = false, nil
    if key then t, err = params_of(red, rule) end
    if t == nil then return nil, err end
    if t then requests[#requests + 1] = { key = key, rule = rule, params = t } end
  end
  return requests
end

local function evalsha(red, name, requests)
  local keys, args = {}, { "" }
  for i, a in ipairs(requests) do
    local t, op = a.params, a.rule.sale and "p" or "t"
    keys[i] = a.key
    for _, v in ipairs { 1, op, t.kind, 1, 1, t.wait, t.cost, t.scale, t.free, t.cap, t.max } do
      args[#args + 1] = type(v) == "number" and string.format("%.0f", v) or v
    end
  end
  local all = { name, #keys, unpack(keys) }
  for _, v in ipairs(args) do all[#all + 1] = v end
  return red:evalsha(unpack(all))
end

-- decide calls Redis. It returns the requests with their results, or nil if Redis does not decide:
-- it does not answer, has no script, or is a replica, which takes no writes.
local function decide(rules)
  return redis.with(function(red)
    local name, err = sha(red)
    if not name then return nil, err end
    local requests
    requests, err = requests_of(red, rules)
    if not requests then return nil, err end
    if #requests == 0 then return {} end
    local numbers
    numbers, err = evalsha(red, name, requests)
    if not numbers then
      dict:delete("sha") -- NOSCRIPT or another error: the API may publish another script
      return nil, err
    end
    for i, a in ipairs(requests) do
      local at = 2 + (i - 1) * STRIDE
      a.verdict, a.remaining, a.retry, a.reset = numbers[at], numbers[at + 3], numbers[at + 4], numbers[at + 5]
    end
    return requests
  end)
end

-- by_policy handles a request that Redis did not decide.
local function by_policy()
  if settings.on_redis_error == "closed" then
    return answer.unavailable("the rate limiter can't be asked")
  end
end

local function deny(rule, seconds, policy)
  return answer.limited(seconds, string.format('"%s";r=0;t=%d', rule, math.ceil(seconds)), policy)
end

-- cache_denial caches a denial until the earliest time when Redis can admit, at most a second. Only
-- a refund or a changed limit could end the denial earlier.
local function cache_denial(ask, seconds, policy)
  local life = math.min(seconds, MAX_DENIAL)
  if life > 0.001 then
    dict:set("deny:" .. ask.key, string.format("%.6f %s", ngx.now() + seconds, policy), life)
  end
end

-- deny_cached answers with a cached denial.
local function deny_cached(rules)
  for _, rule in ipairs(rules) do
    local key = request.key(rule)
    local text = key and dict:get("deny:" .. key)
    if text then
      local till, policy = string.match(text, "^(%S+) (.*)$")
      return deny(rule.rule, math.max(0.001, tonumber(till) - ngx.now()), policy)
    end
  end
end

-- finish caches all denials and answers with the strictest. It passes the window's count to the
-- content phase.
local function finish(requests)
  local worst, longest, worst_policy
  for _, a in ipairs(requests) do
    if a.rule.window then ngx.var.edge_count = a.params.free - a.remaining end
    if a.verdict ~= ALLOWED then
      local seconds = a.verdict == NEVER and MAX_DENIAL or a.retry / 1e6
      local q, w = params.quota(a.params)
      local policy = string.format('"%s";q=%d;w=%d', a.rule.rule, q, w)
      cache_denial(a, seconds, policy)
      if not worst or seconds > longest then worst, longest, worst_policy = a, seconds, policy end
    end
  end
  if worst then return deny(worst.rule.rule, longest, worst_policy) end
end

-- limit admits the request or answers it. A browser's preflight (CORS) takes no path, so it costs
-- no permit.
function M.limit(route)
  local rules = settings.shared[route]
  if not rules or #rules == 0 or ngx.var.request_method == "OPTIONS" then return end
  deny_cached(rules)
  local requests = decide(rules)
  if not requests then return by_policy() end
  return finish(requests)
end

return M
