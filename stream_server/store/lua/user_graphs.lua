-- parts: log_head
-- Read the relations of users that streams need, and the log's head (last entry), in one step. Read only.
-- ARGV: 3.. users. Reply: for each user followed users, blocked users, blockers, muted users and groups, each with its
-- start time; then id and n of the head.
local names = {KEY.following, KEY.blocks, KEY.blockers, KEY.mutes, KEY.groups}
local found = {}
for at = 3, #ARGV do
  for _, key in ipairs(names) do
    found[#found + 1] = redis.call('ZRANGE', key .. ARGV[at], 0, -1, 'WITHSCORES')
  end
end
found[#found + 1], found[#found + 2] = log_head()
return found
