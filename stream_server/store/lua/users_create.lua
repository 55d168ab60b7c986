-- parts: idempotent audit
-- Create users without password and e-mail address, for an administrator. For an existing login, return its user.
-- ARGV: 3 the administrator ('' for the command line), from 4 on login, login in lower case, name and profile card of each user.
-- Reply: for each user `<id>+` if it is new, `<id>=` if the login existed.
local ms, seq = next_position()
local outcomes = {}
for i = 4, #ARGV, 4 do
  local login, lower, name, card = ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3]
  local there = redis.call('HGET', KEY.logins, lower)
  if there then
    outcomes[#outcomes + 1] = there .. '='
  else
    local id, signup = make_id(ms, seq), to_text(ms)
    redis.call('HSET', KEY.logins, lower, id)
    redis.call('HSET', KEY.meta, 'ms', signup, 'seq', to_text(seq))
    redis.call('HSET', KEY.user .. id, 'id', id, 'login', login, 'name', name, 'followers', '0', 'following', '0',
      'posts', '0', 'signup', signup, 'protected', '0', 'card', card)
    outcomes[#outcomes + 1] = id .. '+'
    ms, seq = next_time_and_seq(ms, seq)
  end
end
local reply = keep_reply(table.concat(outcomes, ' '))
audit(ARGV[3], 'create_users', to_text(#outcomes), '')
return reply
