-- parts: idempotent users actor visibility groups lists
-- Change a list or a group of users. If no value changes, there is no log entry.
-- ARGV: 3 user, 4 list or group, 5 'list' or 'group', from 6 on names of hash fields and their new values.
-- Reply: position or `unchanged`; JSON of the list or group.
local kind, find, as_json = ARGV[5], find_owned_group, group_json
if kind == 'list' then find, as_json = find_owned_list, list_json end
local row, denied = find(ARGV[3], ARGV[4], 'id')
if denied then return denied end
local key, changed = (kind == 'list' and KEY.list or KEY.group) .. row.id, false
for at = 6, #ARGV, 2 do
  changed = changed or redis.call('HGET', key, ARGV[at]) ~= ARGV[at + 1]
  row[ARGV[at]] = ARGV[at + 1]
end
local json = as_json(row)
if not changed then return keep_reply('unchanged', json) end
local audience = kind == 'list' and 'users:' .. row.uid or 'group:' .. row.id
local body = '{"wire":{"' .. kind .. '":' .. json .. '}}'
local position = append_entry(kind .. '_update', audience, body, next_position())
redis.call('HSET', key, unpack(ARGV, 6))
return keep_reply(position, json)
