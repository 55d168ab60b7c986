-- parts: job_passes
-- Record that a job's pass failed. The job is due again after a pause, which doubles each time up to one minute. ARGV:
-- 3 job, 4 fence, 5 number of failures at which the job is parked. Reply: 'stale' (not held), 'parked' or 'later'.
local job = find_held_job(ARGV[3], ARGV[4])
if not job then return 'stale' end
local failures = redis.call('HINCRBY', job.key, 'failures', 1)
if failures >= tonumber(ARGV[5]) then
  redis.call('ZADD', KEY.parked, to_text(now_ms()), job.id)
  redis.call('ZREM', KEY.due, job.id)
  return 'parked'
end
redis.call('ZADD', KEY.due, to_text(now_ms() + math.min(60000, 250 * 2 ^ failures)), job.id)
return 'later'
