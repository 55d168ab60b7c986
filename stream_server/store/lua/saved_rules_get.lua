-- The rules of a user, and the head of the log at that moment: read only, in one step, so that they agree.
local head = redis.call('XREVRANGE', KEY.log, '+', '-', 'COUNT', 1)[1]
return {redis.call('HVALS', KEY.rules .. ARGV[3]), head and head[1] or '0-0', head and head[2][2] or '0'}
