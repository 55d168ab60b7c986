-- parts: jobs job_passes
-- Finish the fan-outs of new statuses, for each of which one pass has written the timelines of all readers.
-- ARGV: from 3 on, job and fence of each. Reply: a word for each, as in job_advance.lua: 'stale', 'moved' or 'done'.
local words = {}
for at = 3, #ARGV, 2 do
  local job, word = find_held_job(ARGV[at], ARGV[at + 1]), 'stale'
  if job then word = author_versions(job.author) == job.left and finish_job(job) or 'moved' end
  words[#words + 1] = word
end
return words
