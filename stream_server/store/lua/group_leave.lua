-- parts: idempotent users actor visibility groups
-- Remove a member from a group. The owner may remove any other member; a member may leave; the owner cannot leave.
-- Removing a user who is not a member changes nothing and makes no entry.
-- ARGV: 3 user who acts, 4 group, 5 member. Reply: position or `unchanged`, and JSON of the group.
local uid, other = actor.id, ARGV[5]
local group = find_visible_group(uid, ARGV[4])
if not group then
  return refuse('NOT_FOUND group id')
elseif uid ~= other and group.uid ~= uid then
  return refuse('NOT_YOURS group id')
elseif other == group.uid then
  return refuse('OWNER uid')
end
if not redis.call('ZSCORE', KEY.joined .. group.id, other) then
  if not can_see_user(uid, other) then
    return refuse('NOT_FOUND user uid')
  end
  return keep_reply('unchanged ' .. group_json(group))
end
local position = remove_group_member(group, find_user(other), next_position())
return keep_reply(position .. ' ' .. group_json(group))
