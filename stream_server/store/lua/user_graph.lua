-- parts: log_head
-- Read the relations of one user that streams need, and the log's head (last entry), in one step. Read only.
-- ARGV: 3 user. Reply: followed users, blocked users, blockers, muted users, groups, each with its start time; id and n
-- of the head.
local found = {}
for at, key in ipairs({KEY.following, KEY.blocks, KEY.blockers, KEY.mutes, KEY.groups}) do
  found[at] = redis.call('ZRANGE', key .. ARGV[3], 0, -1, 'WITHSCORES')
end
found[6], found[7] = log_head()
return found
