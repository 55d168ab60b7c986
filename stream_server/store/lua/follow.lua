-- Follows, follow requests, blocks and mutes.

-- Changes a follow: `kind` is 'follow' or 'unfollow'. With `in_step`, the follower's home timeline may change in this
-- step. Returns the position and the fence of the timeline's job ('' for none). The end of a follow withdraws its notifications
-- on both sides, so that a new follow sends them again.
local function change_follow(kind, in_step, source, target, ms, seq, n)
  local starts = kind == 'follow'
  local by = starts and 1 or -1
  source.following, target.followers = to_text(source.following + by), to_text(target.followers + by)
  local position, now = append_entry(kind, PUBLIC, pair_body(source, target), ms, seq, n)
  if starts then
    redis.call('ZADD', KEY.following .. source.id, now, target.id)
  else
    local began = redis.call('ZSCORE', KEY.following .. source.id, target.id)
    end_relation_with(KEY.following, source.id, target.id, began, now)
  end
  set_member(KEY.followers .. target.id, source.id, starts and now)
  redis.call('HINCRBY', KEY.user .. source.id, 'following', by)
  redis.call('HINCRBY', KEY.user .. target.id, 'followers', by)
  if not starts then
    redis.call('HINCRBY', KEY.user .. target.id, 'left', 1)
    restart_fan_outs({[target.id] = true})
    withdraw_notification(target.id, 'follow', source.id, '')
    withdraw_notification(source.id, 'approve', target.id, '')
  end
  if starts and in_step and merge_in_step(source.id, target.id) then return position, '' end
  local job = 'home-' .. source.id .. '-' .. target.id
  local fence = enqueue_job(job, starts and 'merge' or 'remove', ms, 'owner', source.id, 'author', target.id)
  return position, fence
end

-- Whether the source follows, or has requested to follow, as many users as it may. There is a limit because the streams of
-- the source keep a set of all users whom it follows.
local function follows_too_many(source)
  local asked = redis.call('ZCARD', KEY.asked .. source.id)
  return FOLLOWING_MAX > 0 and tonumber(source.following) + asked >= FOLLOWING_MAX
end

-- Since when the source follows the target, or nil.
local function is_following(source, target)
  return redis.call('ZSCORE', KEY.following .. source.id, target.id)
end

-- Whether the source requests to follow the target.
local function has_requested(source, target)
  return redis.call('ZSCORE', KEY.asks .. target.id, source.id)
end

-- Appends the entry of a follow request, which only the two users get.
local function append_request_entry(kind, source, target, ms, seq, n)
  return append_entry(kind, 'users:' .. source.id .. ',' .. target.id, pair_body(source, target), ms, seq, n)
end

-- Deletes a follow request and its notification, without an entry.
local function clear_follow_request(source, target)
  set_member(KEY.asks .. target.id, source.id)
  set_member(KEY.asked .. source.id, target.id)
  withdraw_notification(target.id, 'request', source.id, '')
end

-- Ends a follow request that was withdrawn, refused or ended by a block. Returns the position.
local function remove_follow_request(source, target, ms, seq, n)
  local position = append_request_entry('unrequest', source, target, ms, seq, n)
  clear_follow_request(source, target)
  return position
end

-- Follows a user, or requests to follow a protected user. A repetition changes nothing and sends no notification.
-- `list_id` is a list of the source to which the target is also added ('' for none).
-- Reply: position or `unchanged`, followed by ` requested` for a request; fence of the home timeline's job, fence of
-- the list timeline's job ('' for none), the target's newest statuses.
function write.follow(source_id, target_id, list_id) --> fence, list_fence, newest
  local source, target = require_pair(source_id, target_id)
  if redis.call('ZSCORE', KEY.blocks .. source_id, target_id) then refuse('BLOCKED id') end
  local list = list_id ~= '' and require_owned_list(source_id, list_id, 'list', target_id)
  local following = is_following(source, target)
  local asking, requested = not following and target.protected, not following and has_requested(source, target)
  if not following and not requested and follows_too_many(source) then refuse('TOO_MANY following id') end
  local position, fence, list_fence = 'unchanged', '', ''
  local ms, seq, n = next_position()
  if asking and not requested then
    local now
    position, now = append_request_entry('request', source, target, ms, seq, n)
    set_member(KEY.asks .. target_id, source_id, now)
    set_member(KEY.asked .. source_id, target_id, now)
    notify_one(source, target_id, 'request', '', '', ms, seq, n)
  elseif not following and not asking then
    position, fence = change_follow('follow', true, source, target, ms, seq, n)
    if requested then clear_follow_request(source, target) end
    notify_one(source, target_id, 'follow', '', '', ms, seq, n)
  end
  if list then position, list_fence = change_list_too('list_add', list, target, position) end
  return keep_reply(position .. (asking and ' requested' or ''), fence, list_fence,
    fence .. list_fence ~= '' and newest_statuses(target_id) or {})
end

-- Ends the source's follow of the target, or withdraws the follow request. Without either, nothing changes. `list_id` is a
-- list of the source from which the target is also removed ('' for none). Reply: as of write.follow.
function write.unfollow(source_id, target_id, list_id) --> fence, list_fence, newest
  local source, target = require_pair(source_id, target_id)
  local list = list_id ~= '' and require_owned_list(source_id, list_id, 'list')
  local position, fence, list_fence = 'unchanged', '', ''
  local ms, seq, n = next_position()
  if is_following(source, target) then
    position, fence = change_follow('unfollow', true, source, target, ms, seq, n)
  elseif has_requested(source, target) then
    position = remove_follow_request(source, target, ms, seq, n)
  end
  if list then position, list_fence = change_list_too('list_remove', list, target, position) end
  return keep_reply(position, fence, list_fence, fence .. list_fence ~= '' and newest_statuses(target_id) or {})
end

-- Approves or refuses a follow request of the target ('approve', 'refuse'). An approved requester follows the user, with a
-- log entry of an ordinary follow. A refused one may request again.
-- Reply: position; fence of the job of the requester's home timeline ('' for none), the user's newest statuses.
function write.follow_request_answer(source_id, target_id, answer) --> fence, newest
  local source, target = require_pair(source_id, target_id)
  if not has_requested(target, source) then refuse('NOT_FOUND request id') end
  if answer == 'refuse' then return keep_reply(remove_follow_request(target, source, next_position()), '', {}) end
  local ms, seq, n = next_position()
  local position, fence = change_follow('follow', true, target, source, ms, seq, n)
  clear_follow_request(target, source)
  notify_one(source, target_id, 'approve', '', '', ms, seq, n)
  return keep_reply(position, fence, newest_statuses(source_id))
end

-- Ends the follow or the request of one user towards the other. Returns the fence of the removal job, or ''.
local function end_follow(user, other)
  local ms, seq, n = next_position()
  if is_following(user, other) then
    local _, fence = change_follow('unfollow', false, user, other, ms, seq, n)
    return fence
  elseif has_requested(user, other) then
    remove_follow_request(user, other, ms, seq, n)
  end
  return ''
end

-- Whether one user blocks the other.
local function is_blocking(source, target)
  return redis.call('ZSCORE', KEY.blocks .. source.id, target.id)
end

-- Ends the memberships of one user in the groups of the other, each with a log entry. Returns the groups of the other to
-- which the user is invited.
local function end_memberships(user, owner)
  local invited = {}
  for _, key in ipairs({KEY.groups .. user.id, KEY.invitations .. user.id}) do
    for _, id in ipairs(redis.call('ZRANGE', key, 0, -1)) do
      if redis.call('HGET', KEY.group .. id, 'uid') == owner.id then
        if redis.call('ZSCORE', KEY.joined .. id, user.id) then
          change_group_member('group_leave', find_circle(KEY.group, id), user, next_position())
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
-- other's statuses there. Returns a table: `position`; `fence` of the job that removes the target's statuses from the source's
-- home timeline ('' for none), `newest` statuses of the target; `fence_back` and `newest_back`, the same for the target's home
-- timeline and the source.
local function block_user(source, target)
  local fence, fence_back = end_follow(source, target), end_follow(target, source)
  local of_target, of_source = end_memberships(source, target), end_memberships(target, source)
  local position, now = append_entry('block', 'users:' .. source.id, pair_body(source, target), next_position())
  set_member(KEY.blocks .. source.id, target.id, now)
  set_member(KEY.blockers .. target.id, source.id, now)
  for _, id in ipairs(of_target) do set_invitation(id, source.id) end
  for _, id in ipairs(of_source) do set_invitation(id, target.id) end
  return {position = position, fence = fence, newest = fence ~= '' and newest_statuses(target.id) or {},
    fence_back = fence_back, newest_back = fence_back ~= '' and newest_statuses(source.id) or {}}
end

-- Blocks a user. A repeated block changes nothing. Reply: position or `unchanged`, and what block_user returns.
function write.block(source_id, target_id) --> fence, newest, fence_back, newest_back
  local source, target = require_pair(source_id, target_id)
  if is_blocking(source, target) then return keep_reply('unchanged', '', {}, '', {}) end
  local done = block_user(source, target)
  return keep_reply(done.position, done.fence, done.newest, done.fence_back, done.newest_back)
end

-- Mutes a user, ends a mute, or ends a block: the source does this to the target. `kind` is 'mute', 'unmute' or 'unblock'.
-- Only the source gets the log entry. Ending a block does not restore follows. Returns the position, or nil if nothing
-- changes.
local function change_relation(kind, source, target)
  local key = (kind == 'unblock' and KEY.blocks or KEY.mutes) .. source.id
  local is_new = not redis.call('ZSCORE', key, target.id)
  if is_new ~= (kind == 'mute') then return nil end
  local position, now = append_entry(kind, 'users:' .. source.id, pair_body(source, target), next_position())
  set_member(key, target.id, is_new and now)
  if kind == 'unblock' then set_member(KEY.blockers .. target.id, source.id) end
  return position
end

-- Does what change_relation says. Users may end what they began, also if the target is suspended or blocks them.
-- Reply: position or `unchanged`.
function write.relation_change(source_id, target_id, kind)
  local actor = require_active_user(source_id)
  local other = kind ~= 'mute' and find_user(target_id)
  local ended = other and change_relation(kind, actor, other)
  if ended then return keep_reply(ended) end
  local source, target = require_pair(source_id, target_id)
  return keep_reply(change_relation(kind, source, target) or 'unchanged')
end
