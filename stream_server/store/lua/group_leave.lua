-- parts: idempotent users actor visibility groups
-- A user goes out of a group: who asks, its id, and the user. The owner takes out whom they like, and stays. Not in
-- it: nothing happens, and nobody is told.
local uid, other = actor.id, ARGV[5]
local group = seen_group(uid, ARGV[4])
if not group then
  return refuse('NOT_FOUND group id')
elseif uid ~= other and group.uid ~= uid then
  return refuse('NOT_YOURS group id')
elseif other == group.uid then
  return refuse('OWNER uid')
end
if not redis.call('ZSCORE', KEY.joined .. group.id, other) then
  if not knows(uid, other) then
    return refuse('NOT_FOUND user uid')
  end
  return answer('unchanged ' .. group_json(group))
end
local position = depart(group, person(other), tick())
return answer(position .. ' ' .. group_json(group))
