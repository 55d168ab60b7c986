-- parts: visibility
-- How one user stands to another: read only. Viewer, the one, the other. Answers 1 or 0 for each of: follows, is
-- followed, asks, is asked by, and of the viewer towards the other person: blocks, mutes. What only the two are told
-- (who asks whom) is nothing to a third.
local viewer, one, other = ARGV[3], ARGV[4], ARGV[5]
local refused = refuse_unless_two_visible(viewer, one, other)
if refused then
  return refused
end
local function has_member(key, member)
  return redis.call('ZSCORE', key, member) and 1 or 0
end
local found = {has_member(KEY.following .. one, other), has_member(KEY.following .. other, one)}
if viewer == one or viewer == other then
  local opposite = viewer == one and other or one
  found[3], found[4] = has_member(KEY.asked .. one, other), has_member(KEY.asked .. other, one)
  found[5], found[6] = has_member(KEY.blocks .. viewer, opposite), has_member(KEY.mutes .. viewer, opposite)
end
return found
