-- Jobs. A write enqueues what must follow it in the same step, so a process that dies right after the write loses
-- nothing. A job is a hash and a member of `due`. Its fence is a number that no other job ever has; a worker with an
-- older fence has lost the job. `left` and `deleted` are versions of the author, recorded when a pass read its page.
-- `again` is 'wanted' if a pass with an older fence may still be writing: the job then runs a second time, after
-- everything older must have ended. It is 'done' in this second run.

local function new_fence()
  return to_text(redis.call('HINCRBY', KEY.meta, 'fence', 1))
end

-- How many times a reader left the author, and how many statuses the author deleted, as text.
local function author_versions(author)
  local kept = redis.call('HMGET', KEY.user .. author, 'left', 'deleted')
  return kept[1] or '0', kept[2] or '0'
end

-- The first FANOUT_BATCH_SIZE readers of an author with their scores: followers and, if these are all and there is
-- room, lists with the author. A write returns them, so that the first pass need not ask.
local function first_readers(author)
  local people = redis.call('ZRANGE', KEY.followers .. author, 0, FANOUT_BATCH_SIZE - 1, 'WITHSCORES')
  if #people >= 2 * FANOUT_BATCH_SIZE then return people, {} end
  return people, redis.call('ZRANGE', KEY.listed .. author, 0, FANOUT_BATCH_SIZE - 1 - #people / 2, 'WITHSCORES')
end

-- The newest statuses of an author outside groups, which a timeline adds or removes.
local function newest_statuses(author)
  return redis.call('ZRANGE', KEY.profile .. author, 0, TIMELINE_MAX - 1, 'REV')
end

-- Enqueues the fan-out of a status that was just made, in the mode 'spread', and counts the status. It does the same as
-- enqueue_job, but the job is surely new, and one command changes both counters of the author.
local function enqueue_fan_out(status, author, ms)
  local job, user = 'status-' .. status, KEY.user .. author
  local kept, fence = redis.call('HMGET', user, 'left', 'posts', 'busy'), new_fence()
  redis.call('HSET', KEY.job .. job, 'fence', fence, 'mode', 'spread', 'uid', author, 'status', status, 'left',
    kept[1] or '0')
  redis.call('HSET', user, 'posts', to_text(tonumber(kept[2]) + 1), 'busy', to_text(tonumber(kept[3] or '0') + 1))
  redis.call('ZADD', KEY.due, to_text(ms + JOB_GRACE_MS), job)
  return fence
end

-- Enqueues a job, or restarts the job of that name in another mode. Returns its fence, with which the request runs the
-- first pass. The job is due in JOB_GRACE_MS, when that request has surely finished or died. The names and values
-- behind `ms` are its subject: `uid` and `status`, or `owner` and `author`.
local function enqueue_job(job, mode, ms, ...)
  local key, subject = KEY.job .. job, {...}
  local older, author = redis.call('EXISTS', key) == 1, nil
  for at = 1, #subject, 2 do
    if subject[at] == 'uid' or subject[at] == 'author' then author = subject[at + 1] end
  end
  local left, deleted = '0', '0'
  if author then left, deleted = author_versions(author) end
  local fence = new_fence()
  redis.call('HSET', key, 'fence', fence, 'mode', mode, 'score', '', 'member', '', 'phase', '', 'failures', '0',
    'begun', '', 'left', left, 'deleted', deleted, 'again', (older or mode == 'drop') and 'wanted' or '', ...)
  if subject[1] == 'uid' and not older then redis.call('HINCRBY', KEY.user .. author, 'busy', 1) end
  redis.call('ZADD', KEY.due, to_text(ms + JOB_GRACE_MS), job)
  if older then redis.call('ZREM', KEY.parked, job) end
  return fence
end
