-- parts: ingested ingested_pair users actor source_and_target notifications jobs step_timelines follows
-- End a follow, or a follow request, as another site says. ARGV and reply: as in ingest_follow.lua.
local following = redis.call('ZSCORE', KEY.following .. source.id, target.id)
if not following and not has_requested(source, target) then return keep_unchanged(target.id) end
local position, fence, statuses
if following then
  position, fence = change_follow('unfollow', source, target, next_position())
  statuses = newest_statuses(target.id)
else
  position, fence, statuses = remove_follow_request(source, target, next_position()), '', {}
end
return keep_ingested(position .. ' ' .. target.id, source.id, fence, statuses)
