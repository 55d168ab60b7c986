-- parts: ingested ingested_author users actor visibility statuses groups notification_subjects mentions notifications sleepers jobs step_timelines status_posting
-- Post a status of another site. ARGV: as in parts/status_posting.lua, with foreign ids for 3 to 5.
-- Reply: position and id; the author's id, fence of the fan-out job, and what first_readers returns (parts/jobs.lua).
return keep_ingested(position .. ' ' .. id, uid, fence, people, lists, asleep)
