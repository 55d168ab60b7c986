-- parts: idempotent users actor sessions
-- Change a user's password, and end all other sessions and all tokens without a session. Refused if the password was
-- changed meanwhile. ARGV: 3 user, 4 hash of the present password, 5 hash of the new password, 6 session to keep ('' for
-- none). Reply: position.
if redis.call('HGET', KEY.user .. actor.id, 'password') ~= ARGV[4] then return refuse('WRONG password') end
local position = end_other_sessions(actor.id, ARGV[6], next_position())
redis.call('HSET', KEY.user .. actor.id, 'password', ARGV[5])
return keep_reply(position)
