-- parts: jobs
-- Add a job, due at once, that fills a timeline again and removes statuses that do not belong on it.
-- ARGV: 3 'home' or 'list', 4 owner. Reply: id of the job.
local job = 'refill-' .. ARGV[3] .. '-' .. ARGV[4]
enqueue_job(job, 'refill', now_ms() - JOB_GRACE_MS, 'owner', ARGV[4])
return job
