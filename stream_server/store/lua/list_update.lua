-- parts: idempotent users actor visibility lists hash_changes
-- A list is changed: who asks, its id, then fields of its hash and their new values. As it was: nobody is told.
local list, denied = own_list(ARGV[3], ARGV[4], 'id')
if denied then
  return denied
end
local key = KEY.list .. list.id
local changed, json = take_in(list, key), list_json(list)
if not changed then
  return answer('unchanged ' .. json)
end
local ms, seq, n = tick()
local position = append('list_update', 'users:' .. list.uid, '{"wire":{"list":' .. json .. '}}', ms, seq, n)
redis.call('HSET', key, unpack(ARGV, 5))
return answer(position .. ' ' .. json)
