-- parts: ingested users log_head
-- Create a user of another site. ARGV: 3 login ('' for one made of the id), 4 profile card, 5 `1` for a protected user
-- or `0`, from 6 on fields and values of the hash. Reply: position (of the log's head, if there is no entry) and id.
local login = ARGV[3]
if login ~= '' and redis.call('HEXISTS', KEY.logins, login:lower()) == 1 then return refuse('TAKEN login') end
local ms, seq, n = next_position()
local id, signup, head, head_number = make_id(ms, seq), to_text(ms), log_head()
local position = head .. ' ' .. head_number
if login == '' then login = 'u' .. id end
while redis.call('HEXISTS', KEY.logins, login:lower()) == 1 do
  login = login .. '_'
end
-- Streams learn from an entry who is protected.
if ARGV[5] == '1' then
  local user = {id = id, login = login, card = ARGV[4], followers = 0, following = 0, posts = 0, signup = ms}
  position = append_entry('protect', PUBLIC, '{"wire":{"user":' .. user_json(user) .. '}}', following_position(ms, seq, n))
  redis.call('SADD', KEY.protected, id)
else
  redis.call('HSET', KEY.meta, 'ms', signup, 'seq', to_text(seq))
end
redis.call('HSET', KEY.logins, login:lower(), id)
redis.call('HSET', KEY.user .. id, 'id', id, 'login', login, 'followers', '0', 'following', '0', 'posts', '0', 'signup',
  signup, 'protected', ARGV[5], 'card', ARGV[4], unpack(ARGV, 6))
return keep_ingested(position .. ' ' .. id)
