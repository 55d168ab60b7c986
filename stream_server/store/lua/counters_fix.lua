-- parts: counters
-- The counters of one hash (ARGV 3: its kind, 4: its id) become what they count, in this step; gives how many were not.
local mended = 0
for _, counter in ipairs(COUNTERS_BY_KIND[ARGV[3]]) do
  local said, counted = find_counter_drift(ARGV[3], ARGV[4], counter[1], counter[2])
  if said then
    redis.call('HSET', HASH_OF[ARGV[3]] .. ARGV[4], counter[1], counted)
    mended = mended + 1
  end
end
return mended
