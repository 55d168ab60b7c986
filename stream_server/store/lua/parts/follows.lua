-- Changes the relation of two users, with both counters. Needs the parts users, visibility, notifications and jobs.

-- The source follows the target. Returns the position, the fence of the merge job, and the position of the last entry.
local function add_follow(source, target, ms, seq, n)
  source.following = source.following + 1
  target.followers = target.followers + 1
  local position = append_entry('follow', PUBLIC, pair_body(source, target), ms, seq, n)
  redis.call('ZADD', KEY.following .. source.id, to_text(ms), target.id)
  redis.call('ZADD', KEY.followers .. target.id, to_text(ms), source.id)
  redis.call('HINCRBY', KEY.user .. source.id, 'following', 1)
  redis.call('HINCRBY', KEY.user .. target.id, 'followers', 1)
  local fence = enqueue_job('home-' .. source.id .. '-' .. target.id, 'merge', ms, 'owner', source.id, 'author',
    target.id)
  return position, fence, ms, seq, n
end

-- The source no longer follows the target. Returns the same as add_follow. Withdraws the notifications of the follow on
-- both sides, so that a new follow sends them again.
local function remove_follow(source, target, ms, seq, n)
  source.following = source.following - 1
  target.followers = target.followers - 1
  local position = append_entry('unfollow', PUBLIC, pair_body(source, target), ms, seq, n)
  redis.call('ZREM', KEY.following .. source.id, target.id)
  redis.call('ZREM', KEY.followers .. target.id, source.id)
  redis.call('HINCRBY', KEY.user .. source.id, 'following', -1)
  redis.call('HINCRBY', KEY.user .. target.id, 'followers', -1)
  redis.call('HINCRBY', KEY.user .. target.id, 'left', 1)
  withdraw_notification(target.id, 'follow', source.id, '')
  withdraw_notification(source.id, 'approve', target.id, '')
  local fence = enqueue_job('home-' .. source.id .. '-' .. target.id, 'remove', ms, 'owner', source.id, 'author',
    target.id)
  return position, fence, ms, seq, n
end

-- Whether the source requests to follow the target.
local function has_requested(source, target)
  return redis.call('ZSCORE', KEY.asks .. target.id, source.id)
end

-- Makes a follow request and notifies the target. Returns the position.
local function add_follow_request(source, target, ms, seq, n)
  local position = append_entry('request', 'users:' .. source.id .. ',' .. target.id, pair_body(source, target), ms,
    seq, n)
  redis.call('ZADD', KEY.asks .. target.id, to_text(ms), source.id)
  redis.call('ZADD', KEY.asked .. source.id, to_text(ms), target.id)
  notify(target.id, 'request', source, '', '', ms, seq, n)
  return position
end

-- Deletes a follow request and its notification, without an entry.
local function clear_follow_request(source, target)
  redis.call('ZREM', KEY.asks .. target.id, source.id)
  redis.call('ZREM', KEY.asked .. source.id, target.id)
  withdraw_notification(target.id, 'request', source.id, '')
end

-- Ends a follow request that was withdrawn, refused or ended by a block. Returns the position.
local function remove_follow_request(source, target, ms, seq, n)
  local position = append_entry('unrequest', 'users:' .. source.id .. ',' .. target.id, pair_body(source, target), ms,
    seq, n)
  clear_follow_request(source, target)
  return position
end
