-- Falling asleep and waking of home timelines (parts/sleepers.lua). Both are jobs of the same name as a refill, so that one
-- never works beside the other.
local function home_job(uid)
  return 'refill-home-' .. uid
end

-- Lets a home timeline be asleep, and leaves the job that removes it. Returns false if another job is at work on it.
local function remove_home(uid, now)
  if redis.call('EXISTS', KEY.job .. home_job(uid)) == 1 then return false end
  redis.call('ZADD', KEY.asleep, 'NX', to_text(now), uid)
  enqueue_job(home_job(uid), 'sleep', now - JOB_GRACE_MS, 'owner', uid)
  return true
end

-- Wakes a home timeline that is asleep since `since`, or wakes already. Returns the fence of the refill, '' if another
-- is at work. A job that is in no queue was left by a failure.
local function wake_home(uid, since, now)
  if since < 0 and redis.call('ZSCORE', KEY.due, home_job(uid)) then return '' end
  local fence = enqueue_job(home_job(uid), 'refill', now, 'owner', uid)
  redis.call('ZADD', KEY.asleep, to_text(-now), uid)
  return fence
end
