-- The passes of a job. These scripts keep no reply for a retry, because the next pass finds what a lost call did.

-- A field that a job does not have is empty.
local NO_FIELD = {__index = function() return '' end}

-- A job by its id while this fence holds it, or nil.
local function find_held_job(id, fence)
  local job = setmetatable({id = id, key = KEY.job .. id}, NO_FIELD)
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
      local middle = floor((low + high) / 2)
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
  if job.uid ~= '' then
    redis.call('HINCRBY', KEY.user .. job.uid, 'busy', -1)
  else
    redis.call('HSET', job.key, 'begun', '')
  end
  redis.call('DEL', job.key)
  redis.call('ZREM', KEY.due, job.id)
  return 'done'
end
