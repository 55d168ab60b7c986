-- parts: ingested ingested_pair users visibility actor source_and_target notifications jobs step_timelines follows
-- Follow a user, as another site says. The site has asked the target, so this makes no request. ARGV: 3 source and 4
-- target, foreign ids. Reply: position and the target's id; the source's id, fence of the home timeline's job, the
-- target's newest statuses.
if redis.call('ZSCORE', KEY.following .. source.id, target.id) then return keep_unchanged(target.id) end
if redis.call('ZSCORE', KEY.blocks .. source.id, target.id) then return refuse('BLOCKED target') end
if not has_requested(source, target) and follows_too_many(source) then return refuse('TOO_MANY following target') end
local position, fence, ms, seq, n = change_follow('follow', source, target, next_position())
clear_follow_request(source, target)
notify(target.id, 'follow', source, '', '', ms, seq, n)
return keep_ingested(position .. ' ' .. target.id, source.id, fence, newest_statuses(target.id))
