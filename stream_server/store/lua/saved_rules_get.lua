-- parts: log_head
-- Read the rules of a user, and the head of the log at the same moment. Read only.
-- ARGV: 3 user. Reply: rules as JSON, id and n of the head.
return {redis.call('HVALS', KEY.rules .. ARGV[3]), log_head()}
