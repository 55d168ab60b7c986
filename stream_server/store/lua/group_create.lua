-- parts: idempotent users actor groups
-- Create a group with its owner as first member.
-- ARGV: 3 owner, 4 kind, 5 name, 6 description, 7 name as JSON, 8 description as JSON.
-- Reply: position; JSON of the group.
if redis.call('ZCARD', KEY.groups .. actor.id) >= MAX_GROUPS then return refuse('TOO_MANY groups') end
local ms, seq, n = next_position()
local id = make_id(ms, seq)
local json = group_json({id = id, uid = actor.id, kind = ARGV[4], name_json = ARGV[7], description_json = ARGV[8],
  members = 1, created = ms})
local position, now = append_entry('group_create', 'group:' .. id, '{"wire":{"group":' .. json .. '}}', ms, seq, n)
redis.call('HSET', KEY.group .. id, 'id', id, 'uid', actor.id, 'kind', ARGV[4], 'name', ARGV[5], 'description', ARGV[6],
  'name_json', ARGV[7], 'description_json', ARGV[8], 'members', '1', 'created', now)
set_member(KEY.joined .. id, actor.id, now)
set_member(KEY.groups .. actor.id, id, now)
trim_ended(actor.id)
return keep_reply(position, json)
