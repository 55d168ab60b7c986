-- Read the saved filter rules of a user, and the head (last entry) of the log, in one step. Read only.
-- ARGV: 3 user. Reply: rules as JSON, id and n of the head.
return {redis.call('HVALS', KEY.rules .. ARGV[3]), log_head()}
