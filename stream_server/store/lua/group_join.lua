-- parts: idempotent users actor visibility groups
-- Add a member to a group. In a private group its owner does this, and users join other groups themselves. A user who
-- does not follow the owner is only invited, and joins the group himself or herself. If the user is a member already, nothing
-- changes, and there is no log entry.
-- ARGV: 3 user who acts, 4 group, 5 new member.
-- Reply: position, `unchanged`, `invited` or `unchanged invited`; JSON of the group.
local uid, other, user = actor.id, ARGV[5], actor
local group, within = find_visible_group(uid, ARGV[4])
if not group and uid == other then group = find_inviting_group(uid, ARGV[4]) end
if not group then return refuse('NOT_FOUND group id') end
if uid ~= other then
  if group.uid ~= uid then return refuse('NOT_YOURS group id') end
  user = can_contact(uid, other) and find_user(other)
  if not user then return refuse('NOT_FOUND user uid') end
  within = redis.call('ZSCORE', KEY.joined .. group.id, other)
  if not within and group.kind ~= 'private' then return refuse('BY_THEMSELVES uid') end
  if not within and ASK_STRANGERS and not redis.call('ZSCORE', KEY.following .. other, uid) then
    if redis.call('ZSCORE', KEY.invitations .. other, group.id) then
      return keep_reply('unchanged invited', group_json(group))
    end
    local often = refuse_if_invited_often(uid, other)
    if often then return often end
    set_invitation(group.id, other, to_text(now_ms()))
    return keep_reply('invited', group_json(group))
  end
end
if within then return keep_reply('unchanged', group_json(group)) end
local full = refuse_if_full(group, user)
if full then return full end
local position = change_group_member('group_join', group, user, next_position())
set_invitation(group.id, other)
return keep_reply(position, group_json(group))
