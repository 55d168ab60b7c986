-- parts: idempotent users actor visibility groups
-- Add a member to a group. In a private group its owner does this, and users join other groups themselves. If the user
-- is a member already, nothing changes, and there is no log entry.
-- ARGV: 3 user who acts, 4 group, 5 new member. Reply: position or `unchanged`, and JSON of the group.
local uid, other, user = actor.id, ARGV[5], actor
local group, within = find_visible_group(uid, ARGV[4])
if not group then return refuse('NOT_FOUND group id') end
if uid ~= other then
  if group.uid ~= uid then return refuse('NOT_YOURS group id') end
  user = can_contact(uid, other) and find_user(other)
  if not user then return refuse('NOT_FOUND user uid') end
  within = redis.call('ZSCORE', KEY.joined .. group.id, other)
  if not within and group.kind ~= 'private' then return refuse('BY_THEMSELVES uid') end
end
if within then return keep_reply('unchanged ' .. group_json(group)) end
local full = refuse_if_full(group, user)
if full then return full end
local position = change_group_member('group_join', group, user, next_position())
return keep_reply(position .. ' ' .. group_json(group))
