-- Log-in sessions. KEY.sessions of a user is a hash: its fields are the ids of sessions, and a value is `<created> <used>
-- <expires> <SHA-256 of the family secret> <SHA-256 of the refresh token> [<scopes>] <user agent as JSON>`. Times are in ms
-- since 1970. The family secret is the part that all refresh tokens of one session have in common. Scopes are joined by commas;
-- a session that began by a log-in has none here.
local MAX_SESSIONS = 100

-- Ends sessions. With `before` (Unix time in s), also revokes the tokens without a session that were issued up to then.
-- The entry makes all servers end the streams. Returns the position.
local function end_sessions(uid, ids, before, ms, seq, n)
  local list = #ids > 0 and '"' .. table.concat(ids, '","') .. '"' or ''
  local position = append_entry('revoke', AUDIENCE_NONE, '{"wire":{"uid":"' .. uid .. '","sessions":[' .. list .. ']'
    .. (before and ',"before":' .. to_text(before) or '') .. '}}', ms, seq, n)
  if #ids > 0 then redis.call('HDEL', KEY.sessions .. uid, unpack(ids)) end
  if before then redis.call('HSET', KEY.user .. uid, 'valid_from', to_text(before)) end
  return position
end

-- Ends all sessions of a user except `kept` ('' for none), and revokes all tokens without a session.
local function end_other_sessions(uid, kept, ms, seq, n)
  local ids = {}
  for _, id in ipairs(redis.call('HKEYS', KEY.sessions .. uid)) do
    if id ~= kept then ids[#ids + 1] = id end
  end
  return end_sessions(uid, ids, math.floor(now_ms() / 1000), ms, seq, n)
end

-- Stores a session, which lives for `ttl_ms` from now. Redis forgets the sessions of a user when the last has expired.
local function store_session(uid, id, created, family, token, agent, ttl_ms)
  local key, now = KEY.sessions .. uid, now_ms()
  redis.call('HSET', key, id, (created or to_text(now)) .. ' ' .. to_text(now) .. ' ' .. to_text(now + tonumber(ttl_ms))
    .. ' ' .. family .. ' ' .. token .. ' ' .. agent)
  if redis.call('PTTL', key) < tonumber(ttl_ms) then redis.call('PEXPIRE', key, ttl_ms) end
end

-- Starts a session. A user has at most MAX_SESSIONS; one more ends the session that was not used for longest. `family` and
-- `token` are SHA-256 of the family secret and of the refresh token, `agent` is scopes and a blank, or nothing, and the
-- user agent as JSON. Reply: nothing; user_fields.
function deed.session_start(uid, id, family, token, ttl_ms, agent) --> user -- RIGHTS uid
  local rows, now = redis.call('HGETALL', KEY.sessions .. uid), now_ms()
  local ended, count, oldest, oldest_used = {}, 0, nil, nil
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
  if #ended > 0 then end_sessions(uid, ended, nil, next_position()) end
  store_session(uid, id, nil, family, token, agent, ttl_ms)
  return keep_reply('', user_fields(uid))
end

-- Replaces the refresh token of a session. An earlier refresh token of the same family was stolen, or its thief was
-- faster: nobody knows which of the two asks, so the session ends (RFC 9700 section 4.14.2).
-- Reply: `refreshed <scopes>`, `reused` (the session has ended) or `unknown`; for `refreshed` user_fields. The scopes are
-- comma-joined, and empty for those of a log-in.
function deed.session_refresh(uid, id, family, token, next_token, ttl_ms) --> user -- RIGHTS uid
  local row = redis.call('HGET', KEY.sessions .. uid, id)
  if not row then return {appended, 'unknown'} end
  local created, expires, its_family, its_token, agent = row:match('^(%d+) %d+ (%d+) (%x+) (%x+) (.*)$')
  if its_family ~= family or tonumber(expires) <= now_ms() then return {appended, 'unknown'} end
  if its_token ~= token then
    end_sessions(uid, {id}, nil, next_position())
    return keep_reply('reused')
  end
  store_session(uid, id, created, family, next_token, agent, ttl_ms)
  return keep_reply('refreshed ' .. agent:match('^[%a,]*'), user_fields(uid))
end

-- Ends one session of a user, with its tokens and streams. Reply: position, or `unchanged` without such a session.
function deed.session_end(uid, id) -- RIGHTS uid
  if redis.call('HEXISTS', KEY.sessions .. uid, id) == 0 then return keep_reply('unchanged') end
  return keep_reply(end_sessions(uid, {id}, nil, next_position()))
end

-- Ends all sessions of a user and all tokens without a session. Reply: position.
function deed.sessions_end_all(uid) -- RIGHTS uid
  return keep_reply(end_other_sessions(uid, '', next_position()))
end

-- Changes a user's password, and ends all other sessions and all tokens without a session. Refused if the password was
-- changed meanwhile. `old` and `new` are hashes, `kept` is the session to keep ('' for none). Reply: position.
function deed.password_change(uid, old, new, kept) -- RIGHTS uid
  if redis.call('HGET', KEY.user .. uid, 'password') ~= old then refuse('WRONG password') end
  local position = end_other_sessions(uid, kept, next_position())
  redis.call('HSET', KEY.user .. uid, 'password', new)
  return keep_reply(position)
end

-- Revokes an access token, whose id is `jti`. Revoking it again changes nothing. `expires` is the token's own expiry (ms
-- since 1970), `body` that of the log entry. Reply: position or `unchanged`.
function write.token_revoke(uid, jti, expires, body) -- RIGHTS uid
  local key = KEY.revoked .. uid .. ':' .. jti
  if redis.call('EXISTS', key) == 1 then return keep_reply('unchanged') end
  local position = append_entry('revoke', AUDIENCE_NONE, body, next_position())
  redis.call('SET', key, '1', 'PXAT', expires)
  return keep_reply(position)
end
