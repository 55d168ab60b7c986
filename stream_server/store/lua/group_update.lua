-- parts: people sight groups
-- A group is changed: who asks, its id, then fields of its hash and their new values. As it was: nobody is told.
local before = answered()
if before then
  return before
end
local _, refused = writer(ARGV[3])
if refused then
  return refused
end
local group, denied = own_group(ARGV[3], ARGV[4])
if denied then
  return denied
end
local key, changed = KEY.group .. group.id, false
for at = 5, #ARGV, 2 do
  changed = changed or redis.call('HGET', key, ARGV[at]) ~= ARGV[at + 1]
  group[ARGV[at]] = ARGV[at + 1]
end
local json = group_json(group)
if not changed then
  return answer('unchanged ' .. json)
end
local ms, seq, n = tick()
local position = append('group_update', 'group:' .. group.id, '{"wire":{"group":' .. json .. '}}', ms, seq, n)
redis.call('HSET', key, unpack(ARGV, 5))
return answer(position .. ' ' .. json)
