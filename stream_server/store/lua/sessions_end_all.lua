-- parts: idempotent users actor sessions
-- End all sessions of a user and all tokens without a session. ARGV: 3 user. Reply: position.
return keep_reply(end_other_sessions(ARGV[3], '', next_position()))
