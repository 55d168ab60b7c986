-- parts: idempotent users actor source_and_target notifications jobs step_timelines follows groups
-- Block a user. Follows, follow requests, and places in each other's groups end in both directions, each with a log entry
-- before the block's entry. Invitations end too. So neither can write to the other by a name of a group.
-- Lists keep their members, but neither user sees the other's statuses there. A repeated block changes nothing.
-- ARGV: 3 source (the user who blocks), 4 target.
-- Reply: position or `unchanged`; fence of the job that removes the target's statuses from the source's home timeline
-- ('' for none), the target's newest statuses; the same two values for the target's home timeline and the source.
if redis.call('ZSCORE', KEY.blocks .. source.id, target.id) then
  return keep_reply('unchanged', '', {}, '', {})
end

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

-- Ends the memberships and invitations of one user in the groups of the other.
local function end_places(who, owner)
  for _, key in ipairs({KEY.groups .. who.id, KEY.invitations .. who.id}) do
    for _, id in ipairs(redis.call('ZRANGE', key, 0, -1)) do
      if redis.call('HGET', KEY.group .. id, 'uid') == owner.id then
        if redis.call('ZSCORE', KEY.joined .. id, who.id) then
          change_group_member('group_leave', find_group(id), who, next_position())
        end
        set_invitation(id, who.id)
      end
    end
  end
end

local fence, fence_back = end_relation(source, target), end_relation(target, source)
end_places(source, target)
end_places(target, source)
local position, now = append_entry('block', 'users:' .. source.id, pair_body(source, target), next_position())
set_member(KEY.blocks .. source.id, target.id, now)
set_member(KEY.blockers .. target.id, source.id, now)
return keep_reply(position, fence, fence ~= '' and newest_statuses(target.id) or {}, fence_back,
  fence_back ~= '' and newest_statuses(source.id) or {})
