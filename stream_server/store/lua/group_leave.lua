-- parts: idempotent users actor visibility groups
-- A user goes out of a group: who asks, its id, and the user. The owner takes out whom they like, and stays. Not in
-- it: nothing happens, and nobody is told.
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
