-- parts: idempotent users actor suspension
-- Suspend a user. Suspending a suspended user changes nothing.
-- ARGV: 3 administrator, 4 user. Reply: position or `unchanged`.
local user = find_user(ARGV[4])
if not user then
  return refuse('NOT_FOUND user id')
elseif user.id == actor.id then
  return refuse('ONESELF id')
elseif user.suspended then
  return keep_reply('unchanged')
end
return keep_reply(suspend_user(user.id, next_position()))
