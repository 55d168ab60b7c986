-- What must follow a write is left by the write itself, so that a process which dies right after it loses nothing.
-- A job is a hash and an entry of `due`. Its fence is a number that no other job ever has: whoever works under an older
-- one has lost it. `left` and `deleted` are the author's versions when the page of truth was read that a pass is about.
-- `again`: 'wanted' when a pass of an older fence may still be writing, so that this job, when it is done, is done
-- once more after everything older must be over; 'done' in that second round.

local function new_fence()
  return to_text(redis.call('HINCRBY', KEY.meta, 'fence', 1))
end

-- How often anybody left the author, and how many statuses the author took back, as texts.
local function author_versions(author)
  local kept = redis.call('HMGET', KEY.user .. author, 'left', 'deleted')
  return kept[1] or '0', kept[2] or '0'
end

-- The first PASS readers of an author: followers and, if those are all and room is left, lists that the author is on;
-- each with its score. A write hands them out, so that the pass behind it need not ask.
local function first_readers(author)
  local people = redis.call('ZRANGE', KEY.followers .. author, 0, FANOUT_BATCH_SIZE - 1, 'WITHSCORES')
  if #people >= 2 * FANOUT_BATCH_SIZE then
    return people, {}
  end
  return people, redis.call('ZRANGE', KEY.listed .. author, 0, FANOUT_BATCH_SIZE - 1 - #people / 2, 'WITHSCORES')
end

-- The newest own statuses of an author, which a timeline takes in or gives up.
local function newest_statuses(author)
  return redis.call('ZRANGE', KEY.profile .. author, 0, TIMELINE_MAX - 1, 'REV')
end

-- Leaves a job, or turns the one of that name to another mode and its beginning; gives its fence, with which the
-- request that made it does the first pass. It is due in GRACE_MS, when that request has surely finished or died.
-- The names and values behind are its subject: `uid` and `status`, or `owner` and `author`.
local function enqueue_job(job, mode, ms, ...)
  local key, subject = KEY.job .. job, {...}
  local older, author = redis.call('EXISTS', key) == 1, nil
  for at = 1, #subject, 2 do
    if subject[at] == 'uid' or subject[at] == 'author' then
      author = subject[at + 1]
    end
  end
  local left, deleted = '0', '0'
  if author then
    left, deleted = author_versions(author)
  end
  redis.call('HSET', key, 'mode', mode, 'score', '', 'member', '', 'phase', '', 'failures', '0', 'begun', '',
    'left', left, 'deleted', deleted, 'again', (older or mode == 'drop') and 'wanted' or '', ...)
  if subject[1] == 'uid' and not older then
    redis.call('HINCRBY', KEY.user .. author, 'busy', 1)
  end
  redis.call('ZADD', KEY.due, to_text(ms + JOB_GRACE_MS), job)
  redis.call('ZREM', KEY.parked, job)
  local fence = new_fence()
  redis.call('HSET', key, 'fence', fence)
  return fence
end
