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

-- Ends the memberships of one user in the groups of the other, each with a log entry. Returns the groups of the other to
-- which the user is invited.
local function end_memberships(who, owner)
  local invited = {}
  for _, key in ipairs({KEY.groups .. who.id, KEY.invitations .. who.id}) do
    for _, id in ipairs(redis.call('ZRANGE', key, 0, -1)) do
      if redis.call('HGET', KEY.group .. id, 'uid') == owner.id then
        if redis.call('ZSCORE', KEY.joined .. id, who.id) then
          change_group_member('group_leave', find_group(id), who, next_position())
        end
        invited[#invited + 1] = id
      end
    end
  end
  return invited
end

-- Lets the source block the target. Follows, follow requests, and places in each other's groups end in both directions,
-- each with a log entry before the block's entry. Invitations end after it: they have no entry, and a full Redis refuses
-- an entry. So neither can write to the other by a name of a group. Lists keep their members, but neither user sees the
-- other's statuses there. Returns the position; the fence of the job that removes the target's statuses from the source's
-- home timeline ('' for none), the target's newest statuses; the same two values for the target's home timeline and the
-- source.
local function block_user(source, target)
  local fence, fence_back = end_relation(source, target), end_relation(target, source)
  local of_target, of_source = end_memberships(source, target), end_memberships(target, source)
  local position, now = append_entry('block', 'users:' .. source.id, pair_body(source, target), next_position())
  set_member(KEY.blocks .. source.id, target.id, now)
  set_member(KEY.blockers .. target.id, source.id, now)
  for _, id in ipairs(of_target) do set_invitation(id, source.id) end
  for _, id in ipairs(of_source) do set_invitation(id, target.id) end
  return position, fence, fence ~= '' and newest_statuses(target.id) or {}, fence_back,
    fence_back ~= '' and newest_statuses(source.id) or {}
end
