-- Changes a follow: `kind` is 'follow' or 'unfollow'. Returns the position, the fence of the timeline's job ('' for
-- none), and the position of the last entry. The end of a follow withdraws its notifications on both sides, so that a
-- new follow sends them again.
local function change_follow(kind, source, target, ms, seq, n)
  local starts = kind == 'follow'
  local by = starts and 1 or -1
  source.following, target.followers = source.following + by, target.followers + by
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
  if starts and merge_in_step(source.id, target.id) then return position, '', ms, seq, n end
  local job = 'home-' .. source.id .. '-' .. target.id
  local fence = enqueue_job(job, starts and 'merge' or 'remove', ms, 'owner', source.id, 'author', target.id)
  return position, fence, ms, seq, n
end

-- Whether the source may follow and ask nobody more. Its streams keep a set of all whom it follows.
local function follows_too_many(source)
  local asked = redis.call('ZCARD', KEY.asked .. source.id)
  return FOLLOWING_MAX > 0 and source.following + asked >= FOLLOWING_MAX
end

-- Whether the source requests to follow the target.
local function has_requested(source, target)
  return redis.call('ZSCORE', KEY.asks .. target.id, source.id)
end

-- Appends the entry of a follow request, which only the two users get.
local function append_request_entry(kind, source, target, ms, seq, n)
  return append_entry(kind, 'users:' .. source.id .. ',' .. target.id, pair_body(source, target), ms, seq, n)
end

-- Makes a follow request and notifies the target. Returns the position.
local function add_follow_request(source, target, ms, seq, n)
  local position, now = append_request_entry('request', source, target, ms, seq, n)
  set_member(KEY.asks .. target.id, source.id, now)
  set_member(KEY.asked .. source.id, target.id, now)
  notify(target.id, 'request', source, '', '', ms, seq, n)
  return position
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
