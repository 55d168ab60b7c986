-- parts: log_head
-- Read all protected users, all suspended users, and the head (last entry) of the log, in one step. Read only.
-- ARGV: none. Reply: protected users, suspended users, id and n of the head.
return {redis.call('SMEMBERS', KEY.protected), redis.call('ZRANGE', KEY.suspended, 0, -1), log_head()}
