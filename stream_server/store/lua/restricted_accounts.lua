-- Who is protected and who is suspended, and the head of the log at that moment: read only, in one step.
local head = redis.call('XREVRANGE', KEY.log, '+', '-', 'COUNT', 1)[1]
return {redis.call('SMEMBERS', KEY.protected), redis.call('ZRANGE', KEY.suspended, 0, -1), head and head[1] or '0-0',
  head and head[2][2] or '0'}
