-- parts: idempotent users visibility actor source_and_target notifications jobs step_timelines follows
-- Approve a follow request. The requester then follows the user, with a log entry of an ordinary follow.
-- ARGV: 3 source (the user who approves), 4 target (the user who requested).
-- Reply: position; fence of the job of the requester's home timeline, the source's newest statuses.
if not has_requested(target, source) then return refuse('NOT_FOUND request id') end
local ms, seq, n = next_position()
local position, fence
position, fence, ms, seq, n = change_follow('follow', target, source, ms, seq, n)
clear_follow_request(target, source)
notify(target.id, 'approve', source, '', '', ms, seq, n)
return keep_reply(position, fence, newest_statuses(source.id))
