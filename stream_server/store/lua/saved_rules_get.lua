-- parts: log_head
-- The rules of a user, and the head of the log at that moment: read only, in one step, so that they agree.
return {redis.call('HVALS', KEY.rules .. ARGV[3]), log_head()}
