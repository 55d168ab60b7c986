-- Suspends and reinstates users. Streams learn of it from the entry; everything else reads the user's hash in each
-- step. Needs no other part.

local function suspension_body(uid)
  return '{"wire":{"uid":"' .. uid .. '"}}'
end

local function suspend_user(uid, ms, seq, n)
  local position = append_entry('suspend', AUDIENCE_NONE, suspension_body(uid), ms, seq, n)
  redis.call('HSET', KEY.user .. uid, 'suspended', '1')
  redis.call('ZADD', KEY.suspended, to_text(ms), uid)
  return position
end

local function reinstate_user(uid, ms, seq, n)
  local position = append_entry('reinstate', AUDIENCE_NONE, suspension_body(uid), ms, seq, n)
  redis.call('HDEL', KEY.user .. uid, 'suspended')
  redis.call('ZREM', KEY.suspended, uid)
  return position
end
