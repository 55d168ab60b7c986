-- parts: counters
-- Find counters that differ from the sets they count. Read only.
-- ARGV: 3 kind of hash (user, status, list or group), from 4 on ids.
-- Reply: for each wrong counter {id, field, its value, the right value}.
local found = {}
for at = 4, #ARGV do
  for _, counter in ipairs(COUNTERS_BY_KIND[ARGV[3]]) do
    local value, right_value = find_counter_drift(ARGV[3], ARGV[at], counter[1], counter[2])
    if value then
      found[#found + 1] = {ARGV[at], counter[1], value, right_value}
    end
  end
end
return found
