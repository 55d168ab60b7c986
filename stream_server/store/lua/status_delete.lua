-- parts: idempotent_claim users actor visibility statuses notifications sleepers jobs job_passes dependents step_timelines status_removal
-- Delete a status of the user. ARGV: 3 user, 4 status.
-- Reply: position; fence of the job that cleans up ('' for none), and what first_readers returns (parts/jobs.lua): the
-- readers whose timelines may have the status.
local uid, id = actor.id, ARGV[4]
local row = find_status(id)
local is_own = row and row.uid == uid and row.group == '' -- nothing hides these from their author
if not row or not is_own and status_visibility(uid, row.uid, row.group) == HIDDEN then return refuse('NOT_FOUND status') end
if row.uid ~= uid then return refuse('NOT_YOURS status') end
local position, fence, people, lists, asleep = remove_status(claim_entry, row, next_position())
if not position then return fence end
return keep_reply(position, fence, people, lists, asleep)
