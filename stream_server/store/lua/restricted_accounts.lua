-- parts: log_head
-- Who is protected and who is suspended, and the head of the log at that moment: read only, in one step.
return {redis.call('SMEMBERS', KEY.protected), redis.call('ZRANGE', KEY.suspended, 0, -1), log_head()}
