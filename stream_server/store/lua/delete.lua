-- A status is taken back: who asks, its id, and its JSON as it was posted, by which its delete is matched.
local before = answered()
if before then
  return before
end
local uid, id, facts = ARGV[3], ARGV[4], ARGV[5]
local key = KEY.status .. id
local kept = redis.call('HMGET', key, 'uid', 'origin', 'audience')
if not kept[1] or facts == '' then
  return refuse('NOT_FOUND status')
end
if kept[1] ~= uid then
  return refuse('NOT_YOURS status')
end
local ms, seq, n = tick()
local position = append('delete', kept[3], '{"wire":{"status":{"id":"' .. id .. '","uid":"' .. uid
  .. '","deleted":true}},"facts":{"status":' .. facts .. '}}', ms, seq, n)
redis.call('DEL', key)
redis.call('ZREM', KEY.profile .. uid, id)
redis.call('HINCRBY', KEY.user .. uid, 'posts', -1)
if kept[2] and redis.call('EXISTS', KEY.status .. kept[2]) == 1 then
  redis.call('HINCRBY', KEY.status .. kept[2], 'reposts', -1)
end
return answer(position)
