-- Ends the follow or the request of one user towards the other. Returns the fence of the removal job, or ''.
local function end_relation(who, other)
  local ms, seq, n = next_position()
  if redis.call('ZSCORE', KEY.following .. who.id, other.id) then
    local _, fence = change_follow('unfollow', who, other, ms, seq, n)
    return fence
  elseif has_requested(who, other) then
    remove_follow_request(who, other, ms, seq, n)
  end
  return ''
end

-- Whether one user blocks the other.
local function is_blocking(source, target)
  return redis.call('ZSCORE', KEY.blocks .. source.id, target.id)
end

-- Lets the source block the target. Follows and follow requests in both directions end, each with a log entry before the
-- block's entry. Lists keep their members, but neither user sees the other's statuses there. Returns the position; the
-- fence of the job that removes the target's statuses from the source's home timeline ('' for none), the target's newest
-- statuses; the same two values for the target's home timeline and the source.
local function block_user(source, target)
  local fence, fence_back = end_relation(source, target), end_relation(target, source)
  local position, now = append_entry('block', 'users:' .. source.id, pair_body(source, target), next_position())
  set_member(KEY.blocks .. source.id, target.id, now)
  set_member(KEY.blockers .. target.id, source.id, now)
  return position, fence, fence ~= '' and newest_statuses(target.id) or {}, fence_back,
    fence_back ~= '' and newest_statuses(source.id) or {}
end
