-- Source no longer follows target. Already so: nothing happens, and nobody is told.
local before = answered()
if before then
  return before
end
local source, target, refused = couple(ARGV[3], ARGV[4])
if refused then
  return refused
end
if not redis.call('ZSCORE', KEY.following .. source.id, target.id) then
  return answer('unchanged')
end
source.following = source.following - 1
target.followers = target.followers - 1
local ms, seq, n = tick()
local body = '{"wire":{"source":' .. person_json(source) .. ',"target":' .. person_json(target) .. '}}'
local position = append('unfollow', PUBLIC, body, ms, seq, n)
redis.call('ZREM', KEY.following .. source.id, target.id)
redis.call('ZREM', KEY.followers .. target.id, source.id)
redis.call('HINCRBY', KEY.user .. source.id, 'following', -1)
redis.call('HINCRBY', KEY.user .. target.id, 'followers', -1)
return answer(position)
