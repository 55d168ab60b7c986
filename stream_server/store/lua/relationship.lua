-- parts: visibility
-- How one user stands to another: read only. Viewer, the one, the other. Answers 1 or 0 for each of: follows, is
-- followed, asks, is asked by, and of the viewer towards the other person: blocks, mutes. What only the two are told
-- (who asks whom) is nothing to a third.
local viewer, one, other = ARGV[3], ARGV[4], ARGV[5]
local refused = not_two(viewer, one, other)
if refused then
  return refused
end
local function is(key, member)
  return redis.call('ZSCORE', key, member) and 1 or 0
end
local found = {is(KEY.following .. one, other), is(KEY.following .. other, one)}
if viewer == one or viewer == other then
  local opposite = viewer == one and other or one
  found[3], found[4] = is(KEY.asked .. one, other), is(KEY.asked .. other, one)
  found[5], found[6] = is(KEY.blocks .. viewer, opposite), is(KEY.mutes .. viewer, opposite)
end
return found
