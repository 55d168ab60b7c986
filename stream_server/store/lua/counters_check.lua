-- parts: counters
-- The counters that are not what they count: read only. The kind of hash (user, status, list, group), then ids. Gives
-- for each such counter {id, field, what it says, what is so}.
local found = {}
for at = 4, #ARGV do
  for _, counter in ipairs(COUNTERS_BY_KIND[ARGV[3]]) do
    local said, counted = find_counter_drift(ARGV[3], ARGV[at], counter[1], counter[2])
    if said then
      found[#found + 1] = {ARGV[at], counter[1], said, counted}
    end
  end
end
return found
