-- parts: idempotent users actor visibility statuses notifications jobs status_removal
-- Delete a status of the user. ARGV: 3 user, 4 status. Reply: position; fence of the job that cleans up, the author's
-- first followers and first lists, whose timelines may have the status.
local uid, id = actor.id, ARGV[4]
local row = find_status(id)
if not row or status_visibility(uid, row.uid, row.group) == HIDDEN then return refuse('NOT_FOUND status') end
if row.uid ~= uid then return refuse('NOT_YOURS status') end
return keep_reply(remove_status(row, next_position()))
