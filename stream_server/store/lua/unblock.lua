-- parts: people sight notices jobs follows
-- Source does not block target any more. What the block has cut stays cut. Not so before: nothing happens.
local before = answered()
if before then
  return before
end
local source, target, refused = couple(ARGV[3], ARGV[4])
if refused then
  return refused
end
if not redis.call('ZSCORE', KEY.blocks .. source.id, target.id) then
  return answer('unchanged')
end
local ms, seq, n = tick()
local position = append('unblock', 'users:' .. source.id, pair_body(source, target), ms, seq, n)
redis.call('ZREM', KEY.blocks .. source.id, target.id)
redis.call('ZREM', KEY.blockers .. target.id, source.id)
return answer(position)
