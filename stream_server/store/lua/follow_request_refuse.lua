-- parts: idempotent users actor source_and_target notifications follows
-- Refuse a follow request. The requester may request again.
-- ARGV: 3 source (the user who refuses), 4 target (the user who requested). Reply: position.
if not has_requested(target, source) then return refuse('NOT_FOUND request id') end
return keep_reply(remove_follow_request(target, source, next_position()))
