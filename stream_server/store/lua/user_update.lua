-- parts: idempotent users actor
-- What users say about themselves: user; name, bio, url, place, lang and protected, each as JSON, '' for what stays;
-- then fields and values of the hash, '' for what is taken away. Nothing new: nobody is told.
local uid, key = actor.id, KEY.user .. actor.id

-- In a JSON string each quote has a backslash before it, so that none of these separators can stand inside of one.
local said = {actor.card:match('^"name":(.*),"bio":(.*),"url":(.*),"place":(.*),"lang":(.*),"protected":(%a+)$')}
local was_told, was_protected = table.concat(said, ',', 1, 5), actor.protected
for at = 1, 6 do
  said[at] = ARGV[3 + at] ~= '' and ARGV[3 + at] or said[at]
end
actor.card = format('"name":%s,"bio":%s,"url":%s,"place":%s,"lang":%s,"protected":%s', unpack(said))
actor.protected = said[6] == 'true'

local position = 'unchanged'
local function append_user_event(kind)
  local ms, seq, n = next_position()
  position = append_entry(kind, PUBLIC, '{"wire":{"user":' .. user_json(actor) .. '}}', ms, seq, n)
end
-- Protection first: what is said from then on is said under it.
if actor.protected ~= was_protected then
  append_user_event(actor.protected and 'protect' or 'unprotect')
  redis.call(actor.protected and 'SADD' or 'SREM', KEY.protected, uid)
end
if table.concat(said, ',', 1, 5) ~= was_told then
  append_user_event('user_update')
end
if position ~= 'unchanged' then
  redis.call('HSET', key, 'card', actor.card)
  for at = 10, #ARGV, 2 do
    if ARGV[at + 1] == '' then
      redis.call('HDEL', key, ARGV[at])
    else
      redis.call('HSET', key, ARGV[at], ARGV[at + 1])
    end
  end
end
return keep_reply(position, redis.call('HMGET', key, 'id', 'login', 'card', 'followers', 'following', 'posts', 'signup',
  'email'))
