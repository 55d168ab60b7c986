-- Suspends or reinstates a user. Streams read this from the log entry, requests from the user's hash. A
-- suspension ends the user's sessions, also for the time after it. Returns the position.
local function change_suspension(kind, uid, ms, seq, n)
  local position, now = append_entry(kind, AUDIENCE_NONE, '{"wire":{"uid":"' .. uid .. '"}}', ms, seq, n)
  if kind == 'suspend' then
    redis.call('HSET', KEY.user .. uid, 'suspended', '1')
    redis.call('DEL', KEY.sessions .. uid)
  else
    redis.call('HDEL', KEY.user .. uid, 'suspended')
  end
  set_member(KEY.suspended, uid, kind == 'suspend' and now)
  return position
end
