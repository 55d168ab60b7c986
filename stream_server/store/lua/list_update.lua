-- parts: idempotent users actor visibility lists hash_changes
-- Change a list. Values that do not change make no entry.
-- ARGV: 3 user, 4 list, from 5 on fields of its hash and their new values.
-- Reply: position or `unchanged`, and JSON of the list.
local list, denied = find_owned_list(ARGV[3], ARGV[4], 'id')
if denied then
  return denied
end
local key = KEY.list .. list.id
local changed, json = apply_changes(list, key), list_json(list)
if not changed then
  return keep_reply('unchanged ' .. json)
end
local ms, seq, n = next_position()
local position = append_entry('list_update', 'users:' .. list.uid, '{"wire":{"list":' .. json .. '}}', ms, seq, n)
redis.call('HSET', key, unpack(ARGV, 5))
return keep_reply(position .. ' ' .. json)
