-- parts: idempotent
-- A token is taken back: user, jti, when it would have ended (ms), and the body of the entry. Twice is once.
local key = KEY.revoked .. ARGV[3] .. ':' .. ARGV[4]
if redis.call('EXISTS', key) == 1 then
  return keep_reply('unchanged')
end
local ms, seq, n = next_position()
local position = append_entry('revoke', AUDIENCE_NONE, ARGV[6], ms, seq, n)
redis.call('SET', key, '1', 'PXAT', ARGV[5])
return keep_reply(position)
