-- The good standing of a user, which an administrator takes and gives back. Streams hear of it by the entry; everything
-- else asks the user's hash at each step. Needs no other part.

local function standing_body(uid)
  return '{"wire":{"uid":"' .. uid .. '"}}'
end

local function suspend(uid, ms, seq, n)
  local position = append('suspend', NOBODY, standing_body(uid), ms, seq, n)
  redis.call('HSET', KEY.user .. uid, 'suspended', '1')
  redis.call('ZADD', KEY.suspended, text(ms), uid)
  return position
end

local function reinstate(uid, ms, seq, n)
  local position = append('reinstate', NOBODY, standing_body(uid), ms, seq, n)
  redis.call('HDEL', KEY.user .. uid, 'suspended')
  redis.call('ZREM', KEY.suspended, uid)
  return position
end
