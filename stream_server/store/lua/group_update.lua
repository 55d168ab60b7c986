-- parts: idempotent users actor visibility groups hash_changes
-- Change a group. Values that do not change make no entry.
-- ARGV: 3 user, 4 group, from 5 on fields of its hash and their new values.
-- Reply: position or `unchanged`, and JSON of the group.
local group, denied = find_owned_group(ARGV[3], ARGV[4])
if denied then
  return denied
end
local key = KEY.group .. group.id
local changed, json = apply_changes(group, key), group_json(group)
if not changed then
  return keep_reply('unchanged ' .. json)
end
local ms, seq, n = next_position()
local position = append_entry('group_update', 'group:' .. group.id, '{"wire":{"group":' .. json .. '}}', ms, seq, n)
redis.call('HSET', key, unpack(ARGV, 5))
return keep_reply(position .. ' ' .. json)
