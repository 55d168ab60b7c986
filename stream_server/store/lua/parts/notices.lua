-- Notifications: a sorted set of `<kind>:<source>:<subject>`, so that twice is once, and an undo takes it back.
-- Needs the parts people and sight.

-- Tells a receiver what the source did; `more` is JSON members (`,"status":…`) or ''. Gives the place of the last
-- entry of this step, which moves when somebody was told. The caller has asked whether the receiver may see it.
local function notify(receiver, kind, source, subject, more, ms, seq, n)
  local name = kind .. ':' .. source.id .. ':' .. subject
  if receiver == source.id or not hears(receiver, source.id) or redis.call('ZSCORE', KEY.notices .. receiver, name) then
    return ms, seq, n
  end
  ms, seq, n = another(ms, seq, n)
  local id = id_at(ms, seq)
  append('notification', 'users:' .. receiver, '{"wire":{"notification":{"id":"' .. id .. '","kind":"' .. kind
    .. '","source":' .. person_json(source) .. more .. ',"posted":"' .. iso(ms) .. '","read":false}}}', ms, seq, n)
  redis.call('ZADD', KEY.notices .. receiver, id, name)
  redis.call('ZREMRANGEBYRANK', KEY.notices .. receiver, 0, -(CAP + 1))
  return ms, seq, n
end

-- What was told of is not so any more.
local function unnotify(receiver, kind, source_id, subject)
  redis.call('ZREM', KEY.notices .. receiver, kind .. ':' .. source_id .. ':' .. subject)
end
