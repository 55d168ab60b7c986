-- parts: idempotent users visibility actor source_and_target notifications jobs follows
-- Block a user. Both follows and both follow requests end, each as a log entry before the entry of the block.
-- Lists keep their members, but neither user sees the other's statuses there. A repeated block changes nothing.
-- ARGV: 3 source, 4 target.
-- Reply: position or `unchanged`; fence of the job that removes the target from the source's home ('' for none), the
-- target's newest statuses; the same two values for the opposite direction.
if redis.call('ZSCORE', KEY.blocks .. source.id, target.id) then
  return keep_reply('unchanged', '', {}, '', {})
end

-- Ends the follow or the request of one user towards the other. Returns the fence of the removal job, or ''.
local function end_relation(who, other)
  local ms, seq, n = next_position()
  if redis.call('ZSCORE', KEY.following .. who.id, other.id) then
    local _, fence = remove_follow(who, other, ms, seq, n)
    return fence
  elseif has_requested(who, other) then
    remove_follow_request(who, other, ms, seq, n)
  end
  return ''
end

local fence, fence_back = end_relation(source, target), end_relation(target, source)
local ms, seq, n = next_position()
local position = append_entry('block', 'users:' .. source.id, pair_body(source, target), ms, seq, n)
redis.call('ZADD', KEY.blocks .. source.id, to_text(ms), target.id)
redis.call('ZADD', KEY.blockers .. target.id, to_text(ms), source.id)
return keep_reply(position, fence, fence ~= '' and newest_statuses(target.id) or {}, fence_back,
  fence_back ~= '' and newest_statuses(source.id) or {})
