-- parts: idempotent users visibility actor source_and_target notifications jobs follows
-- Approve a follow request. From here on it is a follow like any other.
-- ARGV: 3 source (the user who approves), 4 target (the user who requested).
-- Reply: position; fence of the home timeline's job, the source's newest statuses.
if not has_requested(target, source) then
  return refuse('NOT_FOUND request id')
end
local ms, seq, n = next_position()
local position, fence
position, fence, ms, seq, n = add_follow(target, source, ms, seq, n)
clear_follow_request(target, source)
notify(target.id, 'approve', source, '', '', ms, seq, n)
return keep_reply(position, fence, newest_statuses(source.id))
