-- parts: ingested users profile
-- Create a user of another site, or change one. ARGV: 3 foreign id, 4 login ('' for one made of the own id; nobody's login
-- changes), from 5 on as in parts/profile.lua. The name of a new user is the login or the foreign id, unless ARGV has one.
-- Reply: position (that of before, or of the log's head, if there is no entry), `created`, `updated` or `unchanged`, login,
-- own id.
local foreign_id, login = ARGV[3], ARGV[4]
local rest = ',"foreign_id":"' .. foreign_id .. '"'

local function reply_of(position, outcome, who)
  return (position or ingested and ingested:match('^%S+ %S+') or table.concat({log_head()}, ' ')) .. ' ' .. outcome .. ' '
    .. who.login .. ' ' .. who.id
end

local known = own_id('user', foreign_id)
if known then
  local who = find_user(known)
  local position = change_profile(who, 5, rest)
  return keep_ingested(reply_of(position, position and 'updated' or 'unchanged', who))
end

local ms, seq, n = next_position()
local id, signup, name = make_id(ms, seq), to_text(ms), login ~= '' and login or foreign_id:sub(1, 50)
local is_free = login ~= '' and redis.call('HEXISTS', KEY.logins, login:lower()) == 0
if not is_free then login = 'u' .. id end
while not is_free and redis.call('HEXISTS', KEY.logins, login) == 1 do
  login = login .. '_'
end
local who = {id = id, login = login, followers = 0, following = 0, posts = 0, signup = ms}
fill_card(who, {'"' .. name .. '"', 'null', 'null', 'null', 'null', 'false', rest}, 5)
local reply
-- Streams learn from an entry who is protected.
if who.protected then
  reply = reply_of(append_user_entry('protect', who, following_position(ms, seq, n)), 'created', who)
  redis.call('SADD', KEY.protected, id)
else
  reply = reply_of(nil, 'created', who)
  redis.call('HSET', KEY.meta, 'ms', signup, 'seq', to_text(seq))
end
redis.call('HSET', FOREIGN_USERS, foreign_id, id)
redis.call('HSET', KEY.logins, login:lower(), id)
store_profile(who, 5, {'id', id, 'login', login, 'name', name, 'followers', '0', 'following', '0', 'posts', '0',
  'signup', signup, 'protected', '0'})
return keep_ingested(reply)
