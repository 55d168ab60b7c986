-- Jobs. A write enqueues what must follow it in the same step, so a process that dies right after the write loses
-- nothing. A job is a hash and a member of `due`. Its fence is a number that no other job ever has; a worker with an
-- older fence has lost the job. `left` and `deleted` are versions of the author, recorded when a pass read its page.
-- The fan-out of a status to one page of readers has no hash and the fence NO_HASH at first, because nearly always the
-- request finishes it at once: it is a member of `due` whose score is the status id. Such a score is above every time in
-- ms, so an earlier version of this server does not touch the job. It gets a hash when a worker claims it, or when a
-- reader leaves the author.
-- `again` is 'wanted' if a pass with an older fence may still be writing: the job then runs a second time, after
-- everything older must have ended. So it does if a server of timelines did not answer. It is 'done' in this second run.

local function new_fence()
  return to_text(redis.call('HINCRBY', KEY.meta, 'fence', 1))
end

-- How many times a reader left the author, and how many statuses the author deleted, as text.
local function author_versions(author)
  local kept = redis.call('HMGET', KEY.user .. author, 'left', 'deleted')
  return kept[1] or '0', kept[2] or '0'
end

-- The first FANOUT_BATCH_SIZE readers of an author: followers and, if these are all and there is room, lists with the
-- author. With scores if there are so many, because then another pass goes on behind them. And those of the author and
-- these followers whose home timelines are asleep. A write returns them, so that the first pass need not ask.
local function first_readers(author)
  local people, lists = redis.call('ZRANGE', KEY.followers .. author, 0, FANOUT_BATCH_SIZE - 1), {}
  local asleep = has_sleepers and find_sleepers(author, people) or {}
  local room = FANOUT_BATCH_SIZE - #people
  if room > 0 then lists = redis.call('ZRANGE', KEY.listed .. author, 0, room - 1) end
  if #lists < room then return people, lists, asleep end
  people = redis.call('ZRANGE', KEY.followers .. author, 0, FANOUT_BATCH_SIZE - 1, 'WITHSCORES')
  return people, room > 0 and redis.call('ZRANGE', KEY.listed .. author, 0, room - 1, 'WITHSCORES') or {}, asleep
end

-- The newest statuses of an author outside groups, which a timeline adds or removes.
local function newest_statuses(author)
  return redis.call('ZRANGE', KEY.profile .. author, 0, TIMELINE_MAX - 1, 'REV')
end

local NO_HASH, LOWEST_ID = '0', '100000000000000'

-- Gives a fan-out its hash, due at `due`. Returns its fence. `busy` counts such fan-outs of an author.
local function make_spread(status, author, due)
  local fence, left = new_fence(), redis.call('HGET', KEY.user .. author, 'left') or '0'
  redis.call('HSET', KEY.job .. 'status-' .. status, 'fence', fence, 'mode', 'spread', 'uid', author, 'status', status,
    'left', left)
  redis.call('HINCRBY', KEY.user .. author, 'busy', 1)
  redis.call('ZADD', KEY.due, to_text(due), 'status-' .. status)
  return fence
end

-- Enqueues the fan-out of a status that was just made, to these first readers. Returns its fence.
local function enqueue_fan_out(status, author, ms, people, lists)
  if #people + #lists >= FANOUT_BATCH_SIZE then return make_spread(status, author, ms + JOB_GRACE_MS) end
  redis.call('ZADD', KEY.due, status, 'status-' .. status)
  return NO_HASH
end

-- Gives a hash to each fan-out without one by these authors, whom readers have just left. So the request that runs the
-- fan-out finds its fence gone, and looks for former readers. Only the newest MAX_RUNNING are examined: others are
-- older than any request. `left` is a set of authors.
local MAX_RUNNING = 1000

local function restart_fan_outs(left)
  for _, job in ipairs(redis.call('ZRANGE', KEY.due, '+inf', LOWEST_ID, 'BYSCORE', 'REV', 'LIMIT', 0, MAX_RUNNING)) do
    local status = job:sub(8)
    local author = redis.call('HGET', KEY.status .. status, 'uid')
    if author and left[author] then make_spread(status, author, now_ms() + JOB_GRACE_MS) end
  end
end

-- Enqueues a job, or restarts the job of that name in another mode. Returns its fence, with which the request runs the
-- first pass. The job is due in JOB_GRACE_MS, when that request has surely finished or died. The names and values
-- behind `ms` are its subject: `uid` and `status`, or `owner` and `author`.
local function enqueue_job(job, mode, ms, ...)
  local key, subject = KEY.job .. job, {...}
  local counted, author = redis.call('EXISTS', key) == 1, nil
  for at = 1, #subject, 2 do
    if subject[at] == 'uid' or subject[at] == 'author' then author = subject[at + 1] end
  end
  local left, deleted = '0', '0'
  if author then left, deleted = author_versions(author) end
  local fence = new_fence()
  -- A fan-out without a hash is only in `due`, a parked job has only its hash.
  local older = redis.call('ZADD', KEY.due, to_text(ms + JOB_GRACE_MS), job) == 0 or counted
  redis.call('HSET', key, 'fence', fence, 'mode', mode, 'score', '', 'member', '', 'phase', '', 'failures', '0',
    'begun', '', 'left', left, 'deleted', deleted, 'again', (older or mode == 'drop') and 'wanted' or '', ...)
  if subject[1] == 'uid' and not counted then redis.call('HINCRBY', KEY.user .. author, 'busy', 1) end
  if counted then redis.call('ZREM', KEY.parked, job) end
  return fence
end
