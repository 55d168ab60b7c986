-- parts: idempotent_claim users actor visibility statuses groups notification_subjects mentions notifications sleepers jobs step_timelines status_posting
-- Post a status. ARGV: see parts/status_posting.lua. Reply: position; JSON of the status, fence of the fan-out job (''
-- for none), and what first_readers returns (parts/jobs.lua).
return keep_reply(position, status, fence, people, lists, asleep)
