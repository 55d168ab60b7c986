-- parts: visibility
-- Read how one user relates to another. Read only. ARGV: 3 viewer, 4 first user, 5 second user.
-- Reply: 1 or 0 for each of six facts: the first user follows the second; the second follows the first; the first
-- requests to follow the second; the second requests to follow the first; the viewer blocks the other user; the viewer
-- mutes the other user. If the viewer is neither of the two users, only the first two facts.
local viewer, one, other = ARGV[3], ARGV[4], ARGV[5]
local refused = refuse_unless_two_visible(viewer, one, other)
if refused then return refused end
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
