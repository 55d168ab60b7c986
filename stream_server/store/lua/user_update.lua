-- parts: idempotent users actor
-- Change a user's profile. Values that do not change make no log entry.
-- ARGV: 3 user; 4 to 9 name, bio, url, place, lang and protected as JSON ('' to keep a value); from 10 on fields and
-- values of the hash ('' to remove a field).
-- Reply: position or `unchanged`; the user's fields id, login, card, followers, following, posts, signup, email.
local uid, key = actor.id, KEY.user .. actor.id

-- In a JSON string each quote has a backslash before it, so that none of these separators can stand inside of one. The
-- last value is the rest of the card: the id that another site gave the user.
local new_values = {actor.card:match('^"name":(.*),"bio":(.*),"url":(.*),"place":(.*),"lang":(.*),"protected":(%a+)(.*)$')}
local old_values, was_protected = table.concat(new_values, ',', 1, 5), actor.protected
for at = 1, 6 do
  new_values[at] = ARGV[3 + at] ~= '' and ARGV[3 + at] or new_values[at]
end
actor.card = format('"name":%s,"bio":%s,"url":%s,"place":%s,"lang":%s,"protected":%s%s', unpack(new_values))
actor.protected = new_values[6] == 'true'

local position = 'unchanged'
local function append_user_event(kind)
  local ms, seq, n = next_position()
  local now
  position, now = append_entry(kind, PUBLIC, '{"wire":{"user":' .. user_json(actor) .. '}}', ms, seq, n)
  return now
end
-- Protection changes first, so that later entries are made under it.
if actor.protected ~= was_protected then
  local now = append_user_event(actor.protected and 'protect' or 'unprotect')
  redis.call(actor.protected and 'SADD' or 'SREM', KEY.protected, uid)
  if not actor.protected then redis.call('HSET', key, 'opened', now) end
end
if table.concat(new_values, ',', 1, 5) ~= old_values then append_user_event('user_update') end
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
