-- parts: sight statuses jobs
-- A status is taken back: who asks, and its id. Its delete is matched by the JSON as it was posted.
local before = answered()
if before then
  return before
end
local uid, id = ARGV[3], ARGV[4]
local key = KEY.status .. id
local row = status_row(id)
if not row or status_sight(uid, row.uid, row.group) == HIDDEN then
  return refuse('NOT_FOUND status')
end
if row.uid ~= uid then
  return refuse('NOT_YOURS status')
end
local kept = redis.call('HMGET', key, 'original', 'in_reply_to', 'mentioned', 'tags')
local ms, seq, n = tick()
local facts = row.head .. (kept[1] and ',"original":' .. kept[1] or '') .. counted('0', '0', '0')
local position = append('delete', row.audience, '{"wire":{"status":{"id":"' .. id .. '","uid":"' .. uid
  .. '","deleted":true}},"facts":{"status":' .. facts .. '}}', ms, seq, n)
redis.call('DEL', key)
redis.call('ZREM', KEY.thread .. row.conversation, id)
if kept[2] then
  redis.call('ZREM', KEY.replies .. kept[2], id)
end
if row.origin and redis.call('EXISTS', KEY.status .. row.origin) == 1 then
  redis.call('HINCRBY', KEY.status .. row.origin, 'reposts', -1)
end
if row.origin then
  redis.call('ZREM', KEY.reposts .. row.origin, id)
end
for who in (kept[3] or ''):gmatch('%S+') do
  redis.call('ZREM', KEY.mentions .. who, id)
end
if row.group ~= '' then
  redis.call('ZREM', KEY.grouped .. row.group, id)
else
  redis.call('ZREM', KEY.profile .. uid, id)
  redis.call('HINCRBY', KEY.user .. uid, 'posts', -1)
  for tag in (kept[4] or ''):gmatch('%S+') do
    redis.call('ZREM', KEY.tag .. tag, id)
  end
end
redis.call('HINCRBY', KEY.user .. uid, 'deleted', 1)
-- The job that spread it now cleans up: timelines, and what hung on it (likes, comments, the list of its reposts).
local fence = leave('status-' .. id, 'clean', ms, 'uid', uid, 'status', id)
return answer(position, fence, redis.call('ZRANGE', KEY.followers .. uid, 0, PASS - 1, 'WITHSCORES'))
