-- parts: idempotent users actor lists
-- Create a list.
-- ARGV: 3 owner, 4 '1' if it is private, otherwise '0', 5 name, 6 description, 7 name as JSON, 8 description as JSON.
-- Reply: position; JSON of the list.
if redis.call('ZCARD', KEY.lists .. actor.id) >= MAX_LISTS then return refuse('TOO_MANY lists') end
local ms, seq, n = next_position()
local id = make_id(ms, seq)
local json = list_json({id = id, uid = actor.id, private = ARGV[4], name_json = ARGV[7], description_json = ARGV[8],
  members = 0, created = ms})
local position = append_entry('list_create', 'users:' .. actor.id, '{"wire":{"list":' .. json .. '}}', ms, seq, n)
redis.call('HSET', KEY.list .. id, 'id', id, 'uid', actor.id, 'private', ARGV[4], 'name', ARGV[5], 'description',
  ARGV[6], 'name_json', ARGV[7], 'description_json', ARGV[8], 'members', '0', 'created', to_text(ms))
redis.call('ZADD', KEY.lists .. actor.id, id, id)
return keep_reply(position, json)
