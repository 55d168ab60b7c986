-- parts: job_passes
-- A pass of a job has failed: job, fence, after how many failures it is parked. Gives 'stale', 'parked', or 'later':
-- it is due again after a pause, twice as long each time, a minute at most.
local job = find_held_job(ARGV[3], ARGV[4])
if not job then
  return 'stale'
end
local failures = redis.call('HINCRBY', job.key, 'failures', 1)
if failures >= tonumber(ARGV[5]) then
  redis.call('ZADD', KEY.parked, to_text(now_ms()), job.id)
  redis.call('ZREM', KEY.due, job.id)
  return 'parked'
end
redis.call('ZADD', KEY.due, to_text(now_ms() + math.min(60000, 250 * 2 ^ failures)), job.id)
return 'later'
