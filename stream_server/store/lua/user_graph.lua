-- parts: log_head
-- What streams must know of a user: whom they follow, block, are blocked by, mute, and their groups, each with when it
-- began; and the head of the log at that moment. Read only, in one step, so that all of it agrees.
local uid = ARGV[3]
local function members_with_start(key)
  return redis.call('ZRANGE', key .. uid, 0, -1, 'WITHSCORES')
end
return {members_with_start(KEY.following), members_with_start(KEY.blocks), members_with_start(KEY.blockers), members_with_start(KEY.mutes), members_with_start(KEY.groups),
  log_head()}
