-- parts: idempotent users sessions
-- Replace the refresh token of a session. An earlier refresh token of the same family was stolen, or its thief was
-- faster: nobody knows which of the two asks, so the session ends (RFC 9700 section 4.14.2).
-- ARGV: 3 user, 4 id of the session, 5 SHA-256 of the family secret, 6 SHA-256 of the refresh token, 7 SHA-256 of the
-- next refresh token, 8 lifetime (ms).
-- Reply: `refreshed <scopes>`, `reused` (the session has ended) or `unknown`; for `refreshed` the fields of the user's
-- hash. The scopes are comma-joined, and empty for those of a log-in.
local uid, id, now = ARGV[3], ARGV[4], now_ms()
local key = KEY.sessions .. uid
local user, refused = find_active_user(uid)
if not user then return refused end
local row = redis.call('HGET', key, id)
if not row then return {0, 'unknown'} end
local created, expires, family, token, agent = row:match('^(%d+) %d+ (%d+) (%x+) (%x+) (.*)$')
if family ~= ARGV[5] or tonumber(expires) <= now then return {0, 'unknown'} end
if token ~= ARGV[6] then
  end_sessions(uid, {id}, nil, next_position())
  return keep_reply('reused')
end
redis.call('HSET', key, id, created .. ' ' .. to_text(now) .. ' ' .. to_text(now + tonumber(ARGV[8])) .. ' ' .. family
  .. ' ' .. ARGV[7] .. ' ' .. agent)
expire_sessions(uid, ARGV[8])
return keep_reply('refreshed ' .. agent:match('^[%a,]*'), redis.call('HMGET', KEY.user .. uid, 'id', 'login', 'card', 'followers', 'following',
  'posts', 'signup', 'email'))
