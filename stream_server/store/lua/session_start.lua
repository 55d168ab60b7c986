-- parts: idempotent users actor sessions
-- Start a login session. A user has at most MAX_SESSIONS; one more ends the session that was not used for longest.
-- ARGV: 3 user, 4 id of the session, 5 SHA-256 of its family secret, 6 SHA-256 of its refresh token, 7 lifetime (ms),
-- 8 scopes and a blank, or nothing, and the user agent as JSON. Reply: nothing; the fields of the user's hash that make the user as JSON.
local MAX_SESSIONS = 100
local key, now = KEY.sessions .. actor.id, now_ms()
local rows, ended, count, oldest, oldest_used = redis.call('HGETALL', key), {}, 0, nil, nil
for i = 1, #rows, 2 do
  local used, expires = rows[i + 1]:match('^%d+ (%d+) (%d+)')
  used = tonumber(used)
  if tonumber(expires) <= now then
    ended[#ended + 1] = rows[i]
  else
    count = count + 1
    if not oldest or used < oldest_used then oldest, oldest_used = rows[i], used end
  end
end
if count >= MAX_SESSIONS then ended[#ended + 1] = oldest end
if #ended > 0 then end_sessions(actor.id, ended, nil, next_position()) end
redis.call('HSET', key, ARGV[4], to_text(now) .. ' ' .. to_text(now) .. ' ' .. to_text(now + tonumber(ARGV[7])) .. ' '
  .. ARGV[5] .. ' ' .. ARGV[6] .. ' ' .. ARGV[8])
expire_sessions(actor.id, ARGV[7])
return keep_reply('', redis.call('HMGET', KEY.user .. actor.id, 'id', 'login', 'card', 'followers', 'following', 'posts',
  'signup', 'email'))
