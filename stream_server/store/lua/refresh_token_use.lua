-- parts: idempotent
-- Use up a refresh token. The token of a suspended user is kept. ARGV: 3 SHA-256 of the token, 4 jti of its session.
-- Reply: the user's id, followed by ` revoked` if the session was revoked; '' if the token is unknown.
local key = KEY.refresh .. ARGV[3]
local uid = redis.call('GET', key)
if not uid then return {0, ''} end
if redis.call('HGET', KEY.user .. uid, 'suspended') == '1' then return refuse('SUSPENDED user') end
local revoked = redis.call('EXISTS', KEY.revoked .. uid .. ':' .. ARGV[4]) == 1
-- SET comes before DEL, because a full Redis refuses SET and executes DEL.
local reply = keep_reply(uid .. (revoked and ' revoked' or ''))
redis.call('DEL', key)
return reply
