-- parts: log_head
-- Read what streams must know of a user, and the head of the log at the same moment. Read only.
-- ARGV: 3 user.
-- Reply: followed users, blocked users, users who block this one, muted users, groups, each with the time of its start;
-- id and n of the head.
local uid = ARGV[3]
local function members_with_start(key)
  return redis.call('ZRANGE', key .. uid, 0, -1, 'WITHSCORES')
end
return {members_with_start(KEY.following), members_with_start(KEY.blocks), members_with_start(KEY.blockers),
  members_with_start(KEY.mutes), members_with_start(KEY.groups),
  log_head()}
