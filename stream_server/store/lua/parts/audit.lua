-- The audit log: what administrators did. The newest MAX_AUDIT deeds are kept.
local MAX_AUDIT = 100000

-- Records a deed: who did what to which user or object, and details. Call it after the first write. Needs no other part.
local function audit(actor_id, deed, subject, details)
  local last = redis.call('ZRANGE', KEY.audit, '-1', '-1', 'WITHSCORES')
  local now = now_ms()
  local id = make_id(now, 0)
  if last[2] and tonumber(last[2]) >= tonumber(id) then id = to_text(tonumber(last[2]) + 1) end
  redis.call('ZADD', KEY.audit, id, id)
  redis.call('HSET', KEY.deeds, id, '{"id":"' .. id .. '","at":"' .. to_iso8601(now) .. '","by":'
    .. json_id_or_null(actor_id) .. ',"deed":"' .. deed .. '","on":"' .. subject .. '","details":"' .. details .. '"}')
  for _, old in ipairs(redis.call('ZRANGE', KEY.audit, '0', to_text(-MAX_AUDIT - 1))) do
    redis.call('ZREM', KEY.audit, old)
    redis.call('HDEL', KEY.deeds, old)
  end
end
