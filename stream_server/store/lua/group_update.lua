-- parts: idempotent users actor visibility groups hash_changes
-- A group is changed: who asks, its id, then fields of its hash and their new values. As it was: nobody is told.
local group, denied = own_group(ARGV[3], ARGV[4])
if denied then
  return denied
end
local key = KEY.group .. group.id
local changed, json = take_in(group, key), group_json(group)
if not changed then
  return answer('unchanged ' .. json)
end
local ms, seq, n = tick()
local position = append('group_update', 'group:' .. group.id, '{"wire":{"group":' .. json .. '}}', ms, seq, n)
redis.call('HSET', key, unpack(ARGV, 5))
return answer(position .. ' ' .. json)
