-- parts: counters
-- Set the counters of one hash to the sizes of the sets they count.
-- ARGV: 3 kind of hash, 4 id. Reply: how many counters were wrong.
local fixed = 0
for _, counter in ipairs(COUNTERS_BY_KIND[ARGV[3]]) do
  local value, right_value = find_counter_drift(ARGV[3], ARGV[4], counter[1], counter[2])
  if value then
    redis.call('HSET', HASH_OF[ARGV[3]] .. ARGV[4], counter[1], right_value)
    fixed = fixed + 1
  end
end
return fixed
