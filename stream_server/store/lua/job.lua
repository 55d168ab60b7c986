-- Jobs. A write enqueues what must follow it in the same step, so a process that dies right after the write loses
-- nothing. A job is a hash and a member of `due`. Its fence is a number that no other job ever has; a worker with an
-- older fence has lost the job. `left` and `deleted` are versions of the author, recorded when a pass read its page.
-- The fan-out of a status to one page of readers has no hash and the fence NO_HASH at first, because nearly always the
-- request finishes it at once: it is a member of `due` whose score is the status id, which is above every time in ms. It
-- gets a hash when a worker claims it, or when a reader leaves the author.
-- `again` is 'wanted' if a pass with an older fence may still be writing: the job then runs a second time, after
-- everything older must have ended. So it does if a server of timelines did not answer. It is 'done' in this second run.
-- The scripts of passes keep no reply for a retry, because the next pass finds what a lost call did.
local NO_HASH = '0'
local LOWEST_ID = '100000000000000'
-- How many fan-outs without a hash are examined when readers leave an author: older ones are older than any request.
local MAX_RUNNING = 1000

local function new_fence()
  return to_text(redis.call('HINCRBY', KEY.meta, 'fence', 1))
end

-- How many times a reader left the author, and how many statuses the author deleted, as text.
local function author_versions(author)
  local kept = redis.call('HMGET', KEY.user .. author, 'left', 'deleted')
  return kept[1] or '0', kept[2] or '0'
end

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
-- fan-out finds its fence gone, and looks for former readers. `left` is a set of authors.
local function restart_fan_outs(left)
  for _, job in ipairs(redis.call('ZRANGE', KEY.due, '+inf', LOWEST_ID, 'BYSCORE', 'REV', 'LIMIT', 0, MAX_RUNNING)) do
    local status = job:sub(8)
    local author = redis.call('HGET', KEY.status .. status, 'uid')
    if author and left[author] then make_spread(status, author, now_ms() + JOB_GRACE_MS) end
  end
end

-- Enqueues a job, or restarts the job of that name in another mode. Returns its fence, with which the request runs the
-- first pass. The job is due in JOB_GRACE_MS, when that request has surely finished or died. The names and values
-- behind `ms` are its subject: `uid` and `status`, or `owner` and perhaps `author`.
local function enqueue_job(job, mode, ms, ...)
  local key, subject = KEY.job .. job, {...}
  local counted, author = redis.call('EXISTS', key) == 1, subject[1] == 'uid' and subject[2] or subject[4]
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

-- A job by its id while this fence holds it, or nil. A field that a job does not have is empty.
local function find_held_job(id, fence)
  local job = setmetatable({id = id, key = KEY.job .. id}, {__index = function() return '' end})
  local kept = redis.call('HGETALL', job.key)
  for at = 1, #kept, 2 do
    job[kept[at]] = kept[at + 1]
  end
  if job.fence ~= fence then return nil end
  job.author = job.uid ~= '' and job.uid or job.author
  job.timelines = id:match('^refill%-(%a+)%-') or id:match('^(%a+)%-')
  return job
end

-- The key of the set of users whose statuses make a timeline.
local function timeline_sources_key(timelines, owner)
  return (timelines == 'home' and KEY.following or KEY.members) .. owner
end

-- The page behind (score, member) of a sorted set, lowest first, as members and scores. The rank is found by bisection,
-- so ten thousand members with the same score cost no more than others, and the member itself may have been removed.
local function page_after(key, score, member, most)
  local low = 0
  if score ~= '' then
    low = redis.call('ZCOUNT', key, '-inf', '(' .. score)
    local high = low + redis.call('ZCOUNT', key, score, score)
    while low < high do
      local middle = math.floor((low + high) / 2)
      if redis.call('ZRANGE', key, to_text(middle), to_text(middle))[1] <= member then
        low = middle + 1
      else
        high = middle
      end
    end
  end
  return redis.call('ZRANGE', key, to_text(low), to_text(low + most - 1), 'WITHSCORES')
end

-- Sets a job's position and holds the job for `hold_ms` more. HSET comes first, because a full Redis refuses it, as it
-- refused the writes of the pass.
local function continue_job(job, phase, score, member, hold_ms)
  redis.call('HSET', job.key, 'phase', phase, 'score', score, 'member', member, 'begun', '', 'failures', '0')
  redis.call('ZADD', KEY.due, to_text(now_ms() + hold_ms), job.id)
end

-- Finishes a job: deletes it, or makes it due once more. A user who unfollowed while statuses of the author were being
-- added may have received one after the removal, so the removal runs again.
local function finish_job(job)
  local busy = job.mode == 'remove' and tonumber(redis.call('HGET', KEY.user .. job.author, 'busy') or '0') > 0
  if job.again == 'wanted' or (busy and job.again ~= 'done') then
    redis.call('HSET', job.key, 'again', 'done')
    continue_job(job, '', '', '', JOB_LEASE_MS)
    return 'again'
  end
  -- A full Redis refuses the first command, as it refused the writes of the pass.
  if job.uid ~= '' and redis.call('HEXISTS', KEY.user .. job.uid, 'busy') == 1 then -- else the account is gone
    redis.call('HINCRBY', KEY.user .. job.uid, 'busy', -1)
  else
    redis.call('HSET', job.key, 'begun', '')
  end
  redis.call('DEL', job.key)
  redis.call('ZREM', KEY.due, job.id)
  return 'done'
end

-- Deletes a page of what depends on a deleted status. With the last page it finishes the job; otherwise the job is due
-- again in `hold_ms`. Returns 'more', 'again' or 'done'.
local function continue_status_cleanup(job, hold_ms)
  continue_job(job, 'rest', '', '', hold_ms)
  return delete_status_dependents(job.status, job.uid) and finish_job(job) or 'more'
end

-- Claims due jobs, each for JOB_LEASE_MS, at most `most`. If a pass of a refill began and did not end, the refill starts
-- again, because this pass may have added statuses that must be removed. Reply: ids and fences, alternating.
function run.job_claim(most)
  local claimed, now = {}, now_ms()

  -- Claims a fan-out without a hash. Returns its fence, or nil if its status is deleted: then nothing is left to do.
  local function claim_fan_out(id)
    local status = id:match('^status%-(%d+)$')
    local author = status and redis.call('HGET', KEY.status .. status, 'uid')
    return author and make_spread(status, author, now + JOB_LEASE_MS)
  end

  local function claim_one(id)
    local key = KEY.job .. id
    local kept = redis.call('HMGET', key, 'mode', 'begun')
    if not kept[1] then return claim_fan_out(id) end
    local fence = new_fence()
    redis.call('HSET', key, 'fence', fence)
    if kept[1] == 'refill' and kept[2] == '1' then
      redis.call('HSET', key, 'phase', '', 'score', '', 'member', '')
    end
    redis.call('ZADD', KEY.due, to_text(now + JOB_LEASE_MS), id)
    return fence
  end

  local function claim_each(from, upto)
    local room = to_text(tonumber(most) - #claimed / 2)
    for _, id in ipairs(redis.call('ZRANGE', KEY.due, from, upto, 'BYSCORE', 'LIMIT', 0, room)) do
      local fence = claim_one(id)
      if fence then
        claimed[#claimed + 1] = id
        claimed[#claimed + 1] = fence
      else
        redis.call('ZREM', KEY.due, id)
      end
    end
  end
  claim_each('-inf', to_text(now))
  claim_each(LOWEST_ID, make_id(now - JOB_GRACE_MS, 0))
  return claimed
end

-- Begins a pass of a job: reads its page, and records the versions of the data that it reads.
-- Reply: mode, phase, kind of timeline ('home' or 'list'), status or owner, author, score after which the page begins,
-- users with scores, newest statuses of the author, lists with scores (only after the last follower),
-- 'done' if the job runs for a second time, and those of the author and these users whose home timelines are asleep.
-- Empty if another worker holds the job.
function run.job_begin_pass(id, fence) --> mode, phase, timelines, subject, author, score, people, newest, lists, again, asleep
  local job = find_held_job(id, fence)
  if not job then return {} end
  local page, newest, lists, asleep, authors, left, deleted = {}, {}, {}, {}, {}, '0', '0'
  if job.author ~= '' then left, deleted = author_versions(job.author) end
  if job.status ~= '' and job.phase ~= 'rest' then
    local score, member = job.score, job.member
    if job.phase == '' then
      page, score, member = page_after(KEY.followers .. job.uid, score, member, FANOUT_BATCH_SIZE), '', ''
      local readers = {}
      for at = 1, #page, 2 do readers[#readers + 1] = page[at] end
      asleep = find_sleepers(job.uid, readers)
    end
    if #page < 2 * FANOUT_BATCH_SIZE then
      lists = page_after(KEY.listed .. job.uid, score, member, FANOUT_BATCH_SIZE - #page / 2)
    end
  elseif job.mode == 'erase' then
    page, newest, lists = readers_to_leave(job.owner)
  elseif job.mode == 'merge' or job.mode == 'remove' then
    newest = newest_statuses(job.author)
  elseif job.mode == 'refill' and job.phase == 'merge' then -- the next authors of a timeline
    if job.timelines == 'home' and job.score == '' then authors[1] = job.owner end
    page = page_after(timeline_sources_key(job.timelines, job.owner), job.score, job.member, REFILL_AUTHORS_PER_PASS)
    for at = 1, #page, 2 do authors[#authors + 1] = page[at] end
    deleted = count_deleted(authors)
  end
  redis.call('HSET', job.key, 'begun', '1', 'left', left, 'deleted', deleted, 'authors',
    table.concat(authors, ' '))
  return {job.mode, job.phase, job.timelines, job.status ~= '' and job.status or job.owner, job.author, job.score, page,
    newest, lists, job.again, asleep}
end

-- How many statuses these authors deleted, as text.
local function count_deleted(authors)
  local deleted = 0
  for _, author in ipairs(authors) do
    local _, gone = author_versions(author)
    deleted = deleted + tonumber(gone)
  end
  return to_text(deleted)
end

-- Whether the data of a job's pass has changed since it began. `looked` is the author's `left` version after the check for
-- former readers ('' without a check).
local function has_changed(job, looked)
  if job.mode == 'spread' then return author_versions(job.author) ~= (looked ~= '' and looked or job.left) end
  if job.mode == 'merge' then
    local _, deleted = author_versions(job.author)
    return deleted ~= job.deleted
  end
  if job.mode ~= 'refill' or job.authors == '' then return false end
  local authors = {}
  for author in job.authors:gmatch('%S+') do
    if author ~= job.owner and not redis.call('ZSCORE', timeline_sources_key(job.timelines, job.owner), author) then
      return true
    end
    authors[#authors + 1] = author
  end
  return count_deleted(authors) ~= job.deleted
end

-- Records that the writes of a job's pass have succeeded, and decides what the worker does next. The arguments behind the
-- fence are: the position after the page (phase, score, member); '1' if this was the last page; time to hold the job (ms);
-- see has_changed; number of statuses on the timeline ('' if it does not matter); '1' if timelines of the page could not be
-- written because their server did not answer: after its last page the job then starts again.
-- Reply: 'stale' (another worker holds the job), 'moved' (the data changed during the pass), 'more', 'again' or 'done'.
function run.job_advance(id, fence, phase, score, member, is_last, hold_ms, looked, size, is_partial)
  local job = find_held_job(id, fence)
  if not job then return 'stale' end
  hold_ms = tonumber(hold_ms)
  if has_changed(job, looked) then
    if job.mode == 'refill' then continue_job(job, '', '', '', hold_ms) end
    return 'moved'
  end
  if is_partial == '1' then
    redis.call('HSET', job.key, 'again', 'wanted')
    job.again = 'wanted'
  end
  if is_last ~= '1' then
    continue_job(job, phase, score, member, hold_ms)
    return 'more'
  elseif job.mode == 'refill' and job.phase == '' then
    continue_job(job, 'merge', '', '', hold_ms)
    return 'more'
  elseif job.mode == 'clean' then
    -- In the same step, because one page usually holds all likes and comments of a status.
    return continue_status_cleanup(job, hold_ms)
  end
  if job.mode == 'remove' and size ~= '' and tonumber(size) < TIMELINE_MAX * 3 / 4
    and not (job.timelines == 'home' and redis.call('ZSCORE', KEY.asleep, job.owner)) then
    enqueue_job(refill_job(job.timelines, job.owner), 'refill', now_ms(), 'owner', job.owner)
  end
  local outcome = finish_job(job)
  -- The home timeline is complete, so it is no longer asleep.
  if outcome == 'done' and job.mode == 'refill' and job.timelines == 'home' then
    local since = redis.call('ZSCORE', KEY.asleep, job.owner)
    if since and tonumber(since) < 0 then redis.call('ZREM', KEY.asleep, job.owner) end
  end
  return outcome
end

-- Deletes a page of dependents: likes and comments of a deleted status, or members of a deleted list.
-- Reply: as of run.job_advance, or 'bare': the list has no members left, so its timeline must be deleted.
function run.job_delete_dependents(id, fence)
  local job = find_held_job(id, fence)
  if not job then return 'stale' end
  if job.mode ~= 'drop' then return continue_status_cleanup(job, JOB_LEASE_MS) end
  redis.call('HSET', job.key, 'begun', '1')
  local left = {}
  local gone = remove_members(KEY.members .. job.owner, FANOUT_BATCH_SIZE, function(uid)
    left[uid] = true
    redis.call('ZREM', KEY.listed .. uid, job.owner)
    redis.call('HINCRBY', KEY.user .. uid, 'left', 1)
  end)
  restart_fan_outs(left)
  continue_job(job, '', '', '', JOB_LEASE_MS)
  return gone < FANOUT_BATCH_SIZE and 'bare' or 'more'
end

-- Records that a job's pass failed. The job is due again after a pause, which doubles each time up to one minute. At `most`
-- failures the job is parked. Reply: 'stale' (not held), 'parked' or 'later'.
function run.job_fail(id, fence, most)
  local job = find_held_job(id, fence)
  if not job then return 'stale' end
  local failures = redis.call('HINCRBY', job.key, 'failures', 1)
  if failures >= tonumber(most) then
    redis.call('ZADD', KEY.parked, to_text(now_ms()), id)
    redis.call('ZREM', KEY.due, id)
    return 'parked'
  end
  redis.call('ZADD', KEY.due, to_text(now_ms() + math.min(60000, 250 * 2 ^ failures)), id)
  return 'later'
end

-- Makes a parked job due again. If the job does not exist, only removes its id. Reply: 1 if the job was parked, otherwise 0.
function run.job_unpark(id)
  if not redis.call('ZSCORE', KEY.parked, id) then return 0 end
  if redis.call('EXISTS', KEY.job .. id) == 1 then
    redis.call('HSET', KEY.job .. id, 'failures', '0')
    redis.call('ZADD', KEY.due, to_text(now_ms()), id)
  end
  redis.call('ZREM', KEY.parked, id)
  return 1
end
