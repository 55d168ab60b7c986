-- Find the user of an issuer's subject, or create one. The first of the logins that is free becomes the user's login. An
-- e-mail address of another user is left out: whoever can choose an address elsewhere must not get an account here.
-- ARGV: 3 subject, 4 e-mail address ('' for none) and 5 the same in lower case, 6 name, 7 profile card, from 8 on logins.
-- Reply: the user's id.
local there = redis.call('HGET', KEY.subjects, ARGV[3])
if there then return {0, there} end
local login
for at = 8, #ARGV do
  if redis.call('HEXISTS', KEY.logins, ARGV[at]:lower()) == 0 then
    login = ARGV[at]
    break
  end
end
local ms, seq = next_position()
local id, signup = make_id(ms, seq), to_text(ms)
login = login or 'u' .. id
redis.call('HSET', KEY.subjects, ARGV[3], id)
redis.call('HSET', KEY.logins, login:lower(), id)
redis.call('HSET', KEY.meta, 'ms', signup, 'seq', to_text(seq))
redis.call('HSET', KEY.user .. id, 'id', id, 'login', login, 'name', ARGV[6], 'followers', '0', 'following', '0', 'posts',
  '0', 'signup', signup, 'protected', '0', 'card', ARGV[7], 'subject', ARGV[3])
if ARGV[4] ~= '' and redis.call('HEXISTS', KEY.emails, ARGV[5]) == 0 then
  redis.call('HSET', KEY.emails, ARGV[5], id)
  redis.call('HSET', KEY.user .. id, 'email', ARGV[4])
end
return {0, id}
