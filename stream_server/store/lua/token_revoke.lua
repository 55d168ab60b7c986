-- parts: idempotent
-- Revoke an access token. Revoking it again changes nothing. ARGV: 3 user, 4 jti (id of the token), 5 the token's own
-- expiry (ms since 1970), 6 body of the log entry. Reply: position or `unchanged`.
local key = KEY.revoked .. ARGV[3] .. ':' .. ARGV[4]
if redis.call('EXISTS', key) == 1 then return keep_reply('unchanged') end
local position = append_entry('revoke', AUDIENCE_NONE, ARGV[6], next_position())
redis.call('SET', key, '1', 'PXAT', ARGV[5])
return keep_reply(position)
