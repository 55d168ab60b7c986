-- parts: idempotent users actor visibility groups
-- Remove a member from a group. The owner may remove any other member, and a member may leave, but the owner cannot. If
-- the user is not a member, only an invitation ends (`ended`), and there is no log entry.
-- ARGV: 3 user who acts, 4 group, 5 member. Reply: position, `ended` or `unchanged`; JSON of the group.
local uid, other = actor.id, ARGV[5]
local group = find_visible_group(uid, ARGV[4]) or find_inviting_group(uid, ARGV[4])
if not group then return refuse('NOT_FOUND group id') end
if uid ~= other and group.uid ~= uid then return refuse('NOT_YOURS group id') end
if other == group.uid then return refuse('OWNER uid') end
if not redis.call('ZSCORE', KEY.joined .. group.id, other) then
  if not can_see_user(uid, other) then return refuse('NOT_FOUND user uid') end
  local is_invited = redis.call('ZSCORE', KEY.invitations .. other, group.id)
  set_invitation(group.id, other)
  return keep_reply(is_invited and 'ended' or 'unchanged', group_json(group))
end
local position = change_group_member('group_leave', group, find_user(other), next_position())
return keep_reply(position, group_json(group))
