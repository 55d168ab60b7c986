-- parts: jobs
-- Enqueue a job, due at once, that fills a timeline again and removes what does not belong there.
-- ARGV: 3 'home' or 'list', 4 owner. Reply: id of the job.
local job = 'refill-' .. ARGV[3] .. '-' .. ARGV[4]
enqueue_job(job, 'refill', now_ms() - JOB_GRACE_MS, 'owner', ARGV[4])
return job
