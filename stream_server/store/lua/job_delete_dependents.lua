-- parts: notifications jobs job_passes dependents
-- Delete a page of dependents: likes and comments of a deleted status, or members of a deleted list.
-- ARGV: 3 job, 4 fence. Reply: as in job_advance.lua, or 'bare': the list has no members left, so its timeline must be
-- deleted.
local job = find_held_job(ARGV[3], ARGV[4])
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
