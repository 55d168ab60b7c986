-- parts: jobs
-- A timeline is to be filled anew, and cleared of what does not belong there: 'home' or 'list', and its owner. Due at
-- once.
local job = 'refill-' .. ARGV[3] .. '-' .. ARGV[4]
enqueue_job(job, 'refill', now_ms() - JOB_GRACE_MS, 'owner', ARGV[4])
return job
