-- parts: idempotent
-- Revoke a token. Revoking it again changes nothing.
-- ARGV: 3 user, 4 jti, 5 the token's own expiry (ms since 1970), 6 body of the entry. Reply: position or `unchanged`.
local key = KEY.revoked .. ARGV[3] .. ':' .. ARGV[4]
if redis.call('EXISTS', key) == 1 then
  return keep_reply('unchanged')
end
local ms, seq, n = next_position()
local position = append_entry('revoke', AUDIENCE_NONE, ARGV[6], ms, seq, n)
redis.call('SET', key, '1', 'PXAT', ARGV[5])
return keep_reply(position)
