-- parts: people sight lists
-- A list is changed: who asks, its id, then fields of its hash and their new values. As it was: nobody is told.
local before = answered()
if before then
  return before
end
local _, refused = writer(ARGV[3])
if refused then
  return refused
end
local list, denied = own_list(ARGV[3], ARGV[4], 'id')
if denied then
  return denied
end
local key, changed = KEY.list .. list.id, false
for at = 5, #ARGV, 2 do
  changed = changed or redis.call('HGET', key, ARGV[at]) ~= ARGV[at + 1]
  list[ARGV[at]] = ARGV[at + 1]
end
local json = list_json(list)
if not changed then
  return answer('unchanged ' .. json)
end
local ms, seq, n = tick()
local position = append('list_update', 'users:' .. list.uid, '{"wire":{"list":' .. json .. '}}', ms, seq, n)
redis.call('HSET', key, unpack(ARGV, 5))
return answer(position .. ' ' .. json)
