-- parts: idempotent users visibility actor source_and_target notifications follows
-- Source does not let target follow, who has asked to, and may ask again.
if not has_requested(target, source) then
  return refuse('NOT_FOUND request id')
end
return keep_reply(remove_follow_request(target, source, next_position()))
