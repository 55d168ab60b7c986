-- parts: job_passes
-- Find statuses that do not belong on a timeline: deleted, in a group, or by authors not followed or listed. Read only.
-- ARGV: 3 'home' or 'list', 4 owner, from 5 on ids of statuses. Reply: the ids found.
local timelines, owner = ARGV[3], ARGV[4]
local key = timeline_sources_key(timelines, owner)
local there = timelines == 'home' or redis.call('EXISTS', KEY.list .. owner) == 1
local found, is_source = {}, {}
for at = 5, #ARGV do
  local kept = redis.call('HMGET', KEY.status .. ARGV[at], 'uid', 'group')
  local author = kept[1]
  if author and is_source[author] == nil then
    is_source[author] = there and (timelines == 'home' and author == owner or redis.call('ZSCORE', key, author))
  end
  if not author or kept[2] or not is_source[author] then found[#found + 1] = ARGV[at] end
end
return found
