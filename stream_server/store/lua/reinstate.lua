-- parts: idempotent users actor suspension
-- End a user's suspension. For a user who is not suspended it changes nothing.
-- ARGV: 3 administrator, 4 user. Reply: position or `unchanged`.
local user = find_user(ARGV[4])
if not user then
  return refuse('NOT_FOUND user id')
elseif not user.suspended then
  return keep_reply('unchanged')
end
return keep_reply(reinstate_user(user.id, next_position()))
