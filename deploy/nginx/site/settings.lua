-- The edge's settings other than limit_req. Times are in seconds unless a name has another unit.
return {
  redis = {
    host = "redis", port = 6379, -- one Redis, not a cluster: see docs/how-to/edge.md
    password = os.getenv("EDGE_REDIS_PASSWORD"), -- no password if it is unset or empty
    timeout_ms = 50, -- of each connect, send and read
    pool = 128, idle_ms = 30000, -- idle connections per worker, and how long they are kept
    rest = 0.1, -- pause of all calls after a failure
  },

  -- The policy if Redis does not answer, has no script or is a replica. "open" passes the request
  -- to the API, which has its own policy. "closed" answers UNAVAILABLE.
  on_redis_error = "open",

  -- The origins of SECKILL_CORS_ORIGINS, such as "https://shop.example.org". Their pages may read
  -- the edge's own answers too.
  origins = {},

  -- The longest time that nginx caches the API's denials of a sale. It is short, because cancelled
  -- and expired orders release units, and a merchant may move the sale's window. NOT_STARTED is
  -- never cached beyond startAt.
  known = { SOLD_OUT = 0.5, NOT_STARTED = 1, ENDED = 1 },

  -- The limits that all nodes share. scripts/lua/ratelimit_decide.lua decides all limits of a
  -- request together and charges all of them or none. Possible values of by are address, user,
  -- goods and all. Each limit is one of
  --   window = {limit, seconds}            a fixed window
  --   bucket = {permits_per_second, burst} a token bucket; an API rule of the same name shares it
  --   sale = true                          the API's bucket of the goods, at the rate of the sale
  --                                        or the operator: nginx reads it, the API charges it
  shared = {
    randomPath = {
      { rule = "edgePerAddress", by = "address", window = { 10, 10 } },
      { rule = "edge", by = "all", bucket = { 20000, 20000 } },
      { rule = "randomPath", by = "goods", sale = true },
    },
    decrStock = {},
  },
}
