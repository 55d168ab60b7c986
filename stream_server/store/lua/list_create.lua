-- parts: idempotent users actor lists
-- A new list: its owner, whether it is private ('1' or '0'), its name and description as they are, and both encoded.
if redis.call('ZCARD', KEY.lists .. actor.id) >= MAX_LISTS then
  return refuse('TOO_MANY lists')
end
local ms, seq, n = next_position()
local id = make_id(ms, seq)
local json = list_json({id = id, uid = actor.id, private = ARGV[4], name_json = ARGV[7], description_json = ARGV[8],
  members = 0, created = ms})
local position = append_entry('list_create', 'users:' .. actor.id, '{"wire":{"list":' .. json .. '}}', ms, seq, n)
redis.call('HSET', KEY.list .. id, 'id', id, 'uid', actor.id, 'private', ARGV[4], 'name', ARGV[5], 'description', ARGV[6],
  'name_json', ARGV[7], 'description_json', ARGV[8], 'members', '0', 'created', to_text(ms))
redis.call('ZADD', KEY.lists .. actor.id, id, id)
return keep_reply(position .. ' ' .. json)
