-- Source begins to follow target. Already so: nothing happens, and nobody is told.
local before = answered()
if before then
  return before
end
local source, target, refused = couple(ARGV[3], ARGV[4])
if refused then
  return refused
end
if redis.call('ZSCORE', KEY.following .. source.id, target.id) then
  return answer('unchanged')
end
source.following = source.following + 1
target.followers = target.followers + 1
local ms, seq, n = tick()
local body = '{"wire":{"source":' .. person_json(source) .. ',"target":' .. person_json(target) .. '}}'
local position = append('follow', PUBLIC, body, ms, seq, n)
redis.call('ZADD', KEY.following .. source.id, text(ms), target.id)
redis.call('ZADD', KEY.followers .. target.id, text(ms), source.id)
redis.call('HINCRBY', KEY.user .. source.id, 'following', 1)
redis.call('HINCRBY', KEY.user .. target.id, 'followers', 1)
return answer(position)
