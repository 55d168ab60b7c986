-- Whom a user follows, and the head of the log at that moment: read only, in one step, so that both agree.
local head = redis.call('XREVRANGE', KEY.log, '+', '-', 'COUNT', 1)[1]
local ids = redis.call('ZRANGE', KEY.following .. ARGV[3], 0, -1)
if not head then
  return {ids, '0-0', '0'}
end
return {ids, head[1], head[2][2]}
