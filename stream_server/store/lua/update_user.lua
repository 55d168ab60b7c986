-- parts: people
-- What users say about themselves: user; name, bio, url, place, lang and protected, each as JSON, '' for what stays;
-- then fields and values of the hash, '' for what is taken away. Nothing new: nobody is told.
local before = answered()
if before then
  return before
end
local uid = ARGV[3]
local key = KEY.user .. uid
local who, refused = writer(uid)
if refused then
  return refused
end

-- In a JSON string each quote has a backslash before it, so that none of these separators can stand inside of one.
local said = {who.card:match('^"name":(.*),"bio":(.*),"url":(.*),"place":(.*),"lang":(.*),"protected":(%a+)$')}
local was_told, was_protected = table.concat(said, ',', 1, 5), who.protected
for at = 1, 6 do
  said[at] = ARGV[3 + at] ~= '' and ARGV[3 + at] or said[at]
end
who.card = format('"name":%s,"bio":%s,"url":%s,"place":%s,"lang":%s,"protected":%s', unpack(said))
who.protected = said[6] == 'true'

local position = 'unchanged'
local function tell(kind)
  local ms, seq, n = tick()
  position = append(kind, PUBLIC, '{"wire":{"user":' .. person_json(who) .. '}}', ms, seq, n)
end
-- Protection first: what is said from then on is said under it.
if who.protected ~= was_protected then
  tell(who.protected and 'protect' or 'unprotect')
  redis.call(who.protected and 'SADD' or 'SREM', KEY.protected, uid)
end
if table.concat(said, ',', 1, 5) ~= was_told then
  tell('user_update')
end
if position ~= 'unchanged' then
  redis.call('HSET', key, 'card', who.card)
  for at = 10, #ARGV, 2 do
    if ARGV[at + 1] == '' then
      redis.call('HDEL', key, ARGV[at])
    else
      redis.call('HSET', key, ARGV[at], ARGV[at + 1])
    end
  end
end
return answer(position, redis.call('HMGET', key, 'id', 'login', 'card', 'followers', 'following', 'posts', 'signup',
  'email'))
