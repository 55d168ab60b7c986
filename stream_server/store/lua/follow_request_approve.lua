-- parts: idempotent users visibility actor source_and_target notifications jobs follows
-- Source lets target follow, who has asked to. From here on it is a follow like any other.
if not has_requested(target, source) then
  return refuse('NOT_FOUND request id')
end
local ms, seq, n = next_position()
local position, fence
position, fence, ms, seq, n = add_follow(target, source, ms, seq, n)
clear_follow_request(target, source)
notify(target.id, 'approve', source, '', '', ms, seq, n)
return keep_reply(position, fence, newest_statuses(source.id))
