-- A new status: its author, what it replies to and what it reposts ('' for neither), then the JSON before its time
-- and after it, the original's JSON up to its counters, then fields and values of the hash.
local before = answered()
if before then
  return before
end
local uid, in_reply_to, origin = ARGV[3], ARGV[4], ARGV[5]
local words, rest, original = ARGV[6], ARGV[7], ARGV[8]
local author = KEY.user .. uid
local login = redis.call('HGET', author, 'login')
if not login then
  return refuse('NOT_FOUND user')
end
if in_reply_to ~= '' and redis.call('EXISTS', KEY.status .. in_reply_to) == 0 then
  return refuse('NOT_FOUND in_reply_to')
end
local shown = ''
if origin ~= '' then
  local counts = redis.call('HMGET', KEY.status .. origin, 'likes', 'comments', 'reposts')
  if not counts[1] or original == '' then
    return refuse('NOT_FOUND origin')
  end
  shown = original .. counters(tonumber(counts[1]), tonumber(counts[2]), tonumber(counts[3]) + 1)
end
local ms, seq, n = tick()
local id = id_at(ms, seq)
local status = '{"id":"' .. id .. '","uid":"' .. uid .. '","login":"' .. login .. '",' .. words .. ',"posted":"'
  .. iso(ms) .. '",' .. rest .. (origin ~= '' and ',"original":' .. shown or '') .. counters(0, 0, 0)
local position = append('post', PUBLIC, '{"wire":{"status":' .. status .. '}}', ms, seq, n)
redis.call('HSET', KEY.status .. id, 'id', id, 'uid', uid, 'login', login, 'posted', text(ms), 'audience', PUBLIC,
  'likes', '0', 'comments', '0', 'reposts', '0', unpack(ARGV, 9))
redis.call('ZADD', KEY.profile .. uid, id, id)
redis.call('HINCRBY', author, 'posts', 1)
if origin ~= '' then
  -- Kept as it was: a delete is matched by it, also when the original is gone by then.
  redis.call('HSET', KEY.status .. id, 'original', shown)
  redis.call('HINCRBY', KEY.status .. origin, 'reposts', 1)
end
return answer(position, status)
