-- parts: idempotent
-- Create a user. There is no log entry, so the user's id comes from the clock and needs no log number. ARGV: 3 login, 4
-- login and 5 e-mail ('' for none) in lower case, 6 profile card, from 7 on fields and values of the hash.
-- Reply: the user's id; time of sign-up (ms since 1970).
local login, lower, email, card = ARGV[3], ARGV[4], ARGV[5], ARGV[6]
if redis.call('HEXISTS', KEY.logins, lower) == 1 then return refuse('TAKEN login') end
if email ~= '' and redis.call('HEXISTS', KEY.emails, email) == 1 then return refuse('TAKEN email') end
local ms, seq = next_position()
local id, signup = make_id(ms, seq), to_text(ms)
redis.call('HSET', KEY.logins, lower, id)
redis.call('HSET', KEY.meta, 'ms', signup, 'seq', to_text(seq))
if email ~= '' then redis.call('HSET', KEY.emails, email, id) end
redis.call('HSET', KEY.user .. id, 'id', id, 'login', login, 'followers', '0', 'following', '0', 'posts', '0',
  'signup', signup, 'protected', '0', 'card', card, unpack(ARGV, 7))
return keep_reply(id, signup)
