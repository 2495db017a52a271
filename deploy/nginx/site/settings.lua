-- What the edge does beyond limit_req. Times in seconds unless a name says otherwise.
return {
  redis = {
    host = "redis", port = 6379, -- one Redis, not a cluster: docs/how-to/edge.md says what to do there
    password = os.getenv("EDGE_REDIS_PASSWORD"), -- none where it is unset or empty
    timeout_ms = 50, -- for each of connecting, asking and hearing
    pool = 128, idle_ms = 30000, -- connections kept, per worker
    rest = 0.1, -- after a failure nobody asks for so long
  },

  -- Where Redis can't be asked, or has forgotten the script: "open" lets the request go on to the API, which has rules of
  -- its own for that; "closed" answers UNAVAILABLE.
  on_redis_error = "open",

  -- How long what the API said of a sale holds here at most. Units come back by cancels and expiry, and a merchant may
  -- move the window: so only for a moment. NOT_STARTED never holds beyond startAt.
  known = { SOLD_OUT = 0.5, NOT_STARTED = 1, ENDED = 1 },

  -- The limits that all nodes share, judged together by scripts/lua/ratelimit_decide.lua: all of a request's are charged,
  -- or none is. by: address, user, goods, all. Each is one of
  --   window = {limit, seconds}            a fixed window
  --   bucket = {permits_per_second, burst} a token bucket; a key of its own unless the API has a rule of this name
  --   sale = true                          the API's own bucket of the goods, at the sale's rate (or the operator's). The
  --                                        edge peeks and does not charge: the API does, when the request gets there.
  shared = {
    randomPath = {
      { rule = "edgePerAddress", by = "address", window = { 10, 10 } },
      { rule = "edge", by = "all", bucket = { 20000, 20000 } },
      { rule = "randomPath", by = "goods", sale = true },
    },
    decrStock = {},
  },
}
