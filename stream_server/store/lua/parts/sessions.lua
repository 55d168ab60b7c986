-- Login sessions of a user: session id -> `<created> <used> <expires> <SHA-256 of the family secret> <SHA-256 of the
-- refresh token> [<scopes>] <user agent as JSON>`, times in ms. Scopes are comma-joined; a log-in has none here.

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
  return end_sessions(uid, ids, floor(now_ms() / 1000), ms, seq, n)
end

-- Lets Redis forget the sessions of a user when the last of them has expired.
local function expire_sessions(uid, ttl_ms)
  local key = KEY.sessions .. uid
  if redis.call('PTTL', key) < tonumber(ttl_ms) then redis.call('PEXPIRE', key, ttl_ms) end
end
