-- parts: job_passes
-- What does not belong on a timeline: read only. 'home' or 'list', its owner, then ids of statuses; gives those that
-- are gone, are in a group, or are by somebody who is not followed, or not on the list.
local timelines, owner = ARGV[3], ARGV[4]
local key = timeline_sources_key(timelines, owner)
local there = timelines == 'home' or redis.call('EXISTS', KEY.list .. owner) == 1
local found, welcome = {}, {}
for at = 5, #ARGV do
  local kept = redis.call('HMGET', KEY.status .. ARGV[at], 'uid', 'group')
  local author = kept[1]
  if author and welcome[author] == nil then
    welcome[author] = there and (timelines == 'home' and author == owner or redis.call('ZSCORE', key, author))
  end
  if not author or kept[2] or not welcome[author] then
    found[#found + 1] = ARGV[at]
  end
end
return found
