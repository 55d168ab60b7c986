-- parts: idempotent users audit
-- Grant scopes to a user beyond those of the user's tokens. ARGV: 3 who grants, 4 user, 5 scopes with blanks between ('' for
-- none). The entry makes all servers forget what the user's tokens allow. Reply: position.
if not find_user(ARGV[4]) then return refuse('NOT_FOUND user id') end
local position = append_entry('revoke', AUDIENCE_NONE, '{"wire":{"uid":"' .. ARGV[4] .. '"}}', next_position())
if ARGV[5] == '' then
  redis.call('HDEL', KEY.user .. ARGV[4], 'scopes')
else
  redis.call('HSET', KEY.user .. ARGV[4], 'scopes', ARGV[5])
end
audit(ARGV[3], ARGV[5] == '' and 'revoke_admin' or 'grant_admin', ARGV[4], '')
return keep_reply(position)
