-- What must follow a write is left by the write itself, so that a process which dies right after it loses nothing.
local GRACE_MS = 3000

-- Leaves a job, or turns the one of that name to another mode and its beginning; gives its fence, with which the
-- request that made it does the first pass. Whoever works on it under an older fence has lost it. It is due in
-- GRACE_MS, when that request has surely finished or died.
local function leave(job, mode, ms, ...)
  local key = KEY.job .. job
  redis.call('HSET', key, 'mode', mode, 'score', '', 'member', '', 'phase', '', 'failures', '0', ...)
  redis.call('ZADD', KEY.due, text(ms + GRACE_MS), job)
  redis.call('ZREM', KEY.parked, job)
  return text(redis.call('HINCRBY', key, 'fence', 1))
end
