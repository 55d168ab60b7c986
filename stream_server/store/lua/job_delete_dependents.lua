-- parts: notifications job_passes dependents
-- What hung on a status that is gone, or on a list, up to PASS of it: job, fence. Gives 'stale', 'more', 'again' or
-- 'done'; of a list 'bare' when nobody is on it any more: its timeline is to go before the job ends.
local job = find_held_job(ARGV[3], ARGV[4])
if not job then
  return 'stale'
elseif job.mode ~= 'drop' then
  return continue_status_cleanup(job, JOB_LEASE_MS)
end
redis.call('HSET', job.key, 'begun', '1')
local gone = remove_members(KEY.members .. job.owner, function(uid)
  redis.call('ZREM', KEY.listed .. uid, job.owner)
  redis.call('HINCRBY', KEY.user .. uid, 'left', 1)
end)
continue_job(job, '', '', '', JOB_LEASE_MS)
return gone < FANOUT_BATCH_SIZE and 'bare' or 'more'
