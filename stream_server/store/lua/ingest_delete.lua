-- parts: ingested users statuses notifications sleepers jobs job_passes dependents step_timelines status_removal
-- Delete a status of another site. ARGV: 3 its foreign id. Reply: position and id; the author's id, fence of the job
-- that cleans up, and what first_readers returns (parts/jobs.lua).
local refused = replace_foreign_id(3, 'post', 'status', 'status')
if refused then return refused end
local row = find_status(ARGV[3])
if not row then return refuse('NOT_FOUND status status') end
local position, fence, people, lists, asleep = remove_status(append_entry, row, next_position())
return keep_ingested(position .. ' ' .. row.id, row.uid, fence, people, lists, asleep)
