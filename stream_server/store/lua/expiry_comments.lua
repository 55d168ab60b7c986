-- Read a page of the comments of a status for the archive, oldest first. Read only.
-- ARGV: 3 status, 4 comment behind which the page begins ('' for the start), 5 how many.
-- Reply: ids, JSON and audiences, alternating.
local found = {}
local from = ARGV[4] == '' and '-inf' or '(' .. ARGV[4]
for _, id in ipairs(redis.call('ZRANGE', KEY.comments .. ARGV[3], from, '+inf', 'BYSCORE', 'LIMIT', 0, ARGV[5])) do
  local kept = redis.call('HMGET', KEY.comment .. id, 'json', 'audience')
  if kept[1] then
    found[#found + 1] = id
    found[#found + 1] = kept[1]
    found[#found + 1] = kept[2]
  end
end
return found
