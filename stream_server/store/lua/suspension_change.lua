-- parts: idempotent users actor suspension audit
-- Suspend a user, or end a suspension. A repetition changes nothing.
-- ARGV: 3 administrator, 4 user, 5 'suspend' or 'reinstate'. Reply: position or `unchanged`.
local kind, user = ARGV[5], find_user(ARGV[4])
if not user then return refuse('NOT_FOUND user id') end
if kind == 'suspend' and user.id == actor.id then return refuse('ONESELF id') end
if user.suspended == (kind == 'suspend') then return keep_reply('unchanged') end
local position = change_suspension(kind, user.id, next_position())
audit(actor.id, kind, user.id, '')
return keep_reply(position)
