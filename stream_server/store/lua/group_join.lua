-- parts: idempotent users actor visibility groups
-- A user comes into a group: who asks, its id, and the user. Into a private one its owner puts people; into others they
-- go by themselves. In it already: nothing happens, and nobody is told.
local uid, other, user = actor.id, ARGV[5], actor
local group, within = find_visible_group(uid, ARGV[4])
if not group then
  return refuse('NOT_FOUND group id')
end
if uid ~= other then
  if group.uid ~= uid then
    return refuse('NOT_YOURS group id')
  end
  user = can_contact(uid, other) and find_user(other)
  if not user then
    return refuse('NOT_FOUND user uid')
  end
  within = redis.call('ZSCORE', KEY.joined .. group.id, other)
  if not within and group.kind ~= 'private' then
    return refuse('BY_THEMSELVES uid')
  end
end
if within then
  return keep_reply('unchanged ' .. group_json(group))
end
local full = refuse_if_full(group, user)
if full then
  return full
end
local position = add_group_member(group, user, next_position())
return keep_reply(position .. ' ' .. group_json(group))
