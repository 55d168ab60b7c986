-- parts: idempotent users actor sessions
-- End one session of a user, with its tokens and streams. ARGV: 3 user, 4 id of the session.
-- Reply: position, or `unchanged` if there is no such session.
if redis.call('HEXISTS', KEY.sessions .. ARGV[3], ARGV[4]) == 0 then return keep_reply('unchanged') end
return keep_reply(end_sessions(ARGV[3], {ARGV[4]}, nil, next_position()))
