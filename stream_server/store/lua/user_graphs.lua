-- Read the relations of users that streams need, and the log's head (last entry), in one step. Read only. It ends
-- before the first user with whom it would read more relations than it may, so that it holds Redis for a moment only.
-- ARGV: 3 most relations of all users together, 4.. users. Reply: for each user that was read followed users, blocked
-- users, blockers, muted users and groups, each with its start time, and follows and memberships that ended, each with
-- its end; then id and n of the head.
local names = {KEY.following, KEY.blocks, KEY.blockers, KEY.mutes, KEY.groups, KEY.ended}
local found, left = {}, tonumber(ARGV[3])

-- Adds the relations of one user. Returns false, and adds nothing, if they are too many.
local function add_user(uid)
  local relations = {}
  for at, key in ipairs(names) do
    relations[at] = redis.call('ZRANGE', key .. uid, '0', to_text(left), 'WITHSCORES')
    left = left - #relations[at] / 2
    if left < 0 then return false end
  end
  for _, relation in ipairs(relations) do
    found[#found + 1] = relation
  end
  return true
end

for at = 4, #ARGV do
  if not add_user(ARGV[at]) then break end
end
found[#found + 1], found[#found + 2] = log_head()
return found
