-- The relation of two persons, changed in one step with both counters. Needs the parts users, visibility, notifications, jobs.

-- The source follows the target: gives the position, the fence of the merge, and the place of the last entry.
local function join(source, target, ms, seq, n)
  source.following = source.following + 1
  target.followers = target.followers + 1
  local position = append('follow', PUBLIC, pair_body(source, target), ms, seq, n)
  redis.call('ZADD', KEY.following .. source.id, text(ms), target.id)
  redis.call('ZADD', KEY.followers .. target.id, text(ms), source.id)
  redis.call('HINCRBY', KEY.user .. source.id, 'following', 1)
  redis.call('HINCRBY', KEY.user .. target.id, 'followers', 1)
  local fence = leave('home-' .. source.id .. '-' .. target.id, 'merge', ms, 'owner', source.id, 'author', target.id)
  return position, fence, ms, seq, n
end

-- The source does not follow the target any more; as `join`. What was told of the beginning is taken back on both
-- sides, so that another beginning is told again.
local function cut(source, target, ms, seq, n)
  source.following = source.following - 1
  target.followers = target.followers - 1
  local position = append('unfollow', PUBLIC, pair_body(source, target), ms, seq, n)
  redis.call('ZREM', KEY.following .. source.id, target.id)
  redis.call('ZREM', KEY.followers .. target.id, source.id)
  redis.call('HINCRBY', KEY.user .. source.id, 'following', -1)
  redis.call('HINCRBY', KEY.user .. target.id, 'followers', -1)
  redis.call('HINCRBY', KEY.user .. target.id, 'left', 1)
  unnotify(target.id, 'follow', source.id, '')
  unnotify(source.id, 'approve', target.id, '')
  local fence = leave('home-' .. source.id .. '-' .. target.id, 'remove', ms, 'owner', source.id, 'author', target.id)
  return position, fence, ms, seq, n
end

local function asks(source, target)
  return redis.call('ZSCORE', KEY.asks .. target.id, source.id)
end

-- A request to follow is made, or ends: withdrawn, refused, granted or cut by a block.
local function ask(source, target, ms, seq, n)
  local position = append('request', 'users:' .. source.id .. ',' .. target.id, pair_body(source, target), ms, seq, n)
  redis.call('ZADD', KEY.asks .. target.id, text(ms), source.id)
  redis.call('ZADD', KEY.asked .. source.id, text(ms), target.id)
  notify(target.id, 'request', source, '', '', ms, seq, n)
  return position
end

local function forget_ask(source, target)
  redis.call('ZREM', KEY.asks .. target.id, source.id)
  redis.call('ZREM', KEY.asked .. source.id, target.id)
  unnotify(target.id, 'request', source.id, '')
end

local function unask(source, target, ms, seq, n)
  local position = append('unrequest', 'users:' .. source.id .. ',' .. target.id, pair_body(source, target), ms, seq, n)
  forget_ask(source, target)
  return position
end
