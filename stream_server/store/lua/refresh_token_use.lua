-- parts: idempotent
-- A refresh token is used up: its SHA-256, and the jti of its session. Answers the user's id, with ` revoked` behind it
-- where that session was ended, or nothing where there is no such token. While its user is suspended it is kept.
local key = KEY.refresh .. ARGV[3]
local uid = redis.call('GET', key)
if not uid then
  return {0, ''}
end
if redis.call('HGET', KEY.user .. uid, 'suspended') == '1' then
  return refuse('SUSPENDED user')
end
local revoked = redis.call('EXISTS', KEY.revoked .. uid .. ':' .. ARGV[4]) == 1
-- First what a full Redis refuses, then what it lets through.
local told = keep_reply(uid .. (revoked and ' revoked' or ''))
redis.call('DEL', key)
return told
