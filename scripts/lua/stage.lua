-- stage: adds one batch of orders to the holdings that one load stages (see load). A repeated batch
-- changes nothing. A batch is refused unless all before it are there, on the lease of the first
-- one: Redis may have been emptied, or failed over, since. The load would be refused as well, after
-- all other orders were read.
--
-- KEYS  1 staged buyers (hash: buyer -> holding; and BATCHES, both see gate)
-- ARGV  1 the batch's number, from 1   2 life of the key, s   3 lease ('' = read INFO)
--       then for each order: buyer id, order number, units (0 = ended); the first batch has none
-- Returns 1 staged, 0 refused.
local staged, batch = KEYS[1], tonumber(ARGV[1])
local FIRST_ARG, STRIDE = 4, 3
local has, lease = string.match(redis.call('HGET', staged, BATCHES) or '0 ', '^(%d+) (.*)$')
has = tonumber(has)
if has >= batch then return 1 end
if has ~= batch - 1 or batch > 1 and not leads(lease, ARGV[3]) then return 0 end
local ids, holdings = {}, holding_functions()
for a = FIRST_ARG, #ARGV, STRIDE do ids[#ids + 1] = ARGV[a] end
local had = #ids > 0 and redis.call('HMGET', staged, unpack(ids))
local has_now = {}
for i, buyer in ipairs(ids) do
  local a = FIRST_ARG + (i - 1) * STRIDE
  local holding, sn, units = has_now[buyer] or had[i], ARGV[a + 1], ARGV[a + 2]
  has_now[buyer] = holding and holdings.with_order(holding, sn, units)
    or units .. ' ' .. sn .. ':' .. units
end
if batch == 1 then lease = current_lease(ARGV[3]) end
local fields = {BATCHES, batch .. ' ' .. lease}
for buyer, holding in pairs(has_now) do
  fields[#fields + 1] = buyer
  fields[#fields + 1] = holding
end
redis.call('HSET', staged, unpack(fields))
redis.call('EXPIRE', staged, ARGV[2])
return 1
