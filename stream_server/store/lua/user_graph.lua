-- What streams must know of a user: whom they follow, block, are blocked by, mute, and their groups, each with when it
-- began; and the head of the log at that moment. Read only, in one step, so that all of it agrees.
local uid = ARGV[3]
local head = redis.call('XREVRANGE', KEY.log, '+', '-', 'COUNT', 1)[1]
local function since(key)
  return redis.call('ZRANGE', key .. uid, 0, -1, 'WITHSCORES')
end
return {since(KEY.following), since(KEY.blocks), since(KEY.blockers), since(KEY.mutes), since(KEY.groups),
  head and head[1] or '0-0', head and head[2][2] or '0'}
