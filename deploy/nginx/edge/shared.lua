-- The limits that all nodes share, of nginx and of the API: scripts/lua/ratelimit_decide.lua judges them, in Redis, by
-- Redis' clock. Its header says what goes in and out. The script's text is the API's alone: here it is known by its SHA,
-- which the API publishes; so there is never a second version of it about.
local answer = require "edge.answer"
local redis = require "edge.redis"
local request = require "edge.request"
local settings = require "site.settings"
local terms = require "edge.terms"

local M = {}

local dict = ngx.shared.edge_shared
local SHA_KEY = "lua:sha1:rate_limiter" -- internal/ratelimit, ScriptKey
local SHA_LIFE = 5                      -- s; a newer API may have published a newer script
local TERMS_LIFE = 1                    -- s; a merchant or an operator may have changed the rate
local DENIAL_AT_MOST = 1                -- s
local ALLOWED, NEVER = 1, 2
local STRIDE = 6

-- The numbers of all limits but the sales' are known from the start; a limit that is none stops nginx from starting.
for route, rules in pairs(settings.shared) do
  for _, rule in ipairs(rules) do
    if rule.window then
      rule.terms = terms.window(rule.window[1], rule.window[2])
    elseif rule.bucket then
      rule.terms = terms.bucket(tostring(rule.bucket[1]), rule.bucket[2])
    end
    if not request.counts_by(rule.by) or not rule.sale and not rule.terms then
      error("site/settings.lua: shared." .. route .. ": " .. tostring(rule.rule) .. " is no limit, or none that can be kept exact", 0)
    end
  end
end

-- sha gives the script's name, from memory or from Redis; false where the API has not published it.
local function sha(red)
  local known = dict:get("sha")
  if known then return known end
  local text, err = red:get(SHA_KEY)
  if text == ngx.null then return false end
  if not text then return nil, err end
  dict:set("sha", text, SHA_LIFE)
  return text
end

-- sale_limit reads the limit of a goods as the API would find it: the operator's for the goods, the sale's own, the
-- operator's for all (internal/ratelimit/admin.go, holds).
local function sale_limit(red, goods)
  red:init_pipeline(2)
  red:hmget("ratelimit:{rules}:overrides", "randomPath " .. goods, "randomPath *")
  red:hget("sk:{" .. goods .. "}", "card")
  local said, err = red:commit_pipeline()
  if not said then return nil, err end
  local set, card = said[1], said[2]
  local own = type(card) == "string" and string.match(card, '"rate":({[^}]*})')
  local function text(v) return type(v) == "string" and v or nil end
  return text(set[1]) or own or text(set[2]) or ""
end

-- terms_of gives a rule's numbers for this request; false where the edge does not judge by it.
local function terms_of(red, rule)
  if rule.terms then return rule.terms end
  local goods = ngx.var.edge_goods
  local text = dict:get("limit:" .. goods)
  if not text then
    local err
    text, err = sale_limit(red, goods)
    if not text then return nil, err end
    dict:set("limit:" .. goods, text, TERMS_LIFE)
  end
  return terms.of_json(text) or false
end

-- asks_of lists what is to be asked: one for each rule that this request can be counted by.
local function asks_of(red, rules)
  local asks = {}
  for _, rule in ipairs(rules) do
    local key = request.key(rule)
    local t, err = false, nil
    if key then t, err = terms_of(red, rule) end
    if t == nil then return nil, err end
    if t then asks[#asks + 1] = { key = key, rule = rule, terms = t } end
  end
  return asks
end

local function evalsha(red, name, asks)
  local keys, args = {}, { "" }
  for i, a in ipairs(asks) do
    local t, op = a.terms, a.rule.sale and "p" or "t"
    keys[i] = a.key
    for _, v in ipairs { 1, op, t.kind, 1, 1, t.wait, t.cost, t.scale, t.free, t.cap, t.most } do
      args[#args + 1] = type(v) == "number" and string.format("%.0f", v) or v
    end
  end
  local all = { name, #keys, unpack(keys) }
  for _, v in ipairs(args) do all[#all + 1] = v end
  return red:evalsha(unpack(all))
end

-- judge asks Redis. It returns the asks with their answers, or false where the request is not to be judged by them, or
-- nil where Redis could not be asked.
local function judge(rules)
  return redis.with(function(red)
    local name, err = sha(red)
    if name == nil then return nil, err end
    if not name then return { unpublished = true } end
    local asks
    asks, err = asks_of(red, rules)
    if not asks then return nil, err end
    if #asks == 0 then return {} end
    local numbers
    numbers, err = evalsha(red, name, asks)
    if numbers == nil then return nil, err end -- the connection's trouble
    if not numbers then
      dict:delete("sha") -- NOSCRIPT: the API loads it anew, perhaps another; any other error: likewise
      return { refused = err }
    end
    for i, a in ipairs(asks) do
      local at = 2 + (i - 1) * STRIDE
      a.verdict, a.remaining, a.retry, a.reset = numbers[at], numbers[at + 3], numbers[at + 4], numbers[at + 5]
    end
    return asks
  end)
end

-- by_policy is what becomes of a request that could not be judged.
local function by_policy()
  if settings.on_redis_error == "closed" then
    return answer.unavailable("the rate limiter can't be asked")
  end
end

local function deny(rule, seconds, policy)
  return answer.limited(seconds, string.format('"%s";r=0;t=%d', rule, math.ceil(seconds)), policy)
end

-- remember keeps a denial until Redis could say yes at the earliest (at most a second): until then every answer must be
-- no, for nothing but a refund or a change makes a limiter emptier.
local function remember(ask, seconds, policy)
  local life = math.min(seconds, DENIAL_AT_MOST)
  if life > 0.001 then
    dict:set("deny:" .. ask.key, string.format("%.6f %s", ngx.now() + seconds, policy), life)
  end
end

-- remembered refuses by a denial that still holds.
local function remembered(rules)
  for _, rule in ipairs(rules) do
    local key = request.key(rule)
    local text = key and dict:get("deny:" .. key)
    if text then
      local till, policy = string.match(text, "^(%S+) (.*)$")
      return deny(rule.rule, math.max(0.001, tonumber(till) - ngx.now()), policy)
    end
  end
end

-- tell acts on the answers: the strictest denial is told and each is remembered; the window's count goes on to the
-- content phase.
local function tell(asks)
  local worst, longest, worst_policy
  for _, a in ipairs(asks) do
    if a.rule.window then ngx.var.edge_count = a.terms.free - a.remaining end
    if a.verdict ~= ALLOWED then
      local seconds = a.verdict == NEVER and DENIAL_AT_MOST or a.retry / 1e6
      local q, w = terms.quota(a.terms)
      local policy = string.format('"%s";q=%d;w=%d', a.rule.rule, q, w)
      remember(a, seconds, policy)
      if not worst or seconds > longest then worst, longest, worst_policy = a, seconds, policy end
    end
  end
  if worst then return deny(worst.rule.rule, longest, worst_policy) end
end

-- limit lets the request go on, or answers it.
function M.limit(route)
  local rules = settings.shared[route]
  if not rules or #rules == 0 then return end
  remembered(rules)
  local asks = judge(rules)
  if not asks or asks.refused or asks.unpublished then return by_policy() end
  return tell(asks)
end

return M
