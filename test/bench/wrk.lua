-- wrk.lua lets wrk send the requests of a file, in turn, until a number of requests are sent. It
-- prints how many wanted answers came in how many seconds. wrk alone measures for a fixed time,
-- but a random path is used only once.
--
-- An answer with a random path leads to the purchase with it. Its request id is the number of the
-- request that asked for the path.
--
-- Arguments: the file, whose requests end with a NUL; the number of requests; the wanted status.
local ffi = require("ffi")
ffi.cdef("typedef struct { long s, ns; } moment; int clock_gettime(int clock, moment *now);")

local monotonic, moment = 1, ffi.new("moment[1]")
local requests, purchases = {}, {}
local sent, answered, limit, wanted, began = 0, 0, 0, 0, nil

local function now()
  ffi.C.clock_gettime(monotonic, moment)
  return tonumber(moment[0].s) + tonumber(moment[0].ns) / 1e9
end

local function finish(text)
  io.write(text, "\n")
  io.flush()
  os.exit(0)
end

function init(args)
  local file = assert(io.open(args[1], "rb"))
  for request in file:read("*a"):gmatch("%Z+") do
    requests[#requests + 1] = request
  end
  limit, wanted = tonumber(args[2]), tonumber(args[3])
end

local function purchase(path, id)
  local request = requests[tonumber(id)]
  local goods, rest = request:match("goodsId=(%d+)( .*)$")
  return "POST /" .. path .. "/decrStock?goodsId=" .. goods .. rest
end

function request()
  if not began then -- wrk parses the first one, and does not send it
    began = 0
    return requests[1]
  elseif began == 0 then
    began = now()
  end
  local next = table.remove(purchases)
  if next then
    return next
  elseif sent == limit then
    finish(("answered %d in %.6f s"):format(answered, now() - began))
  end
  sent = sent + 1
  return requests[(sent - 1) % #requests + 1]
end

function response(status, _, body)
  if status == wanted then
    answered = answered + 1
    return
  end
  local path, id = body:match('"randomPath":"(%x+)".-"requestId":"(%d+)"')
  if not path then
    finish(("status %d, not %d: %s"):format(status, wanted, body))
  end
  purchases[#purchases + 1] = purchase(path, id)
end
