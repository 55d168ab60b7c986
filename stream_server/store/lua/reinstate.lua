-- parts: idempotent users actor suspension
-- A user is suspended no more: administrator, user. Already so: nothing happens.
local user = person(ARGV[4])
if not user then
  return refuse('NOT_FOUND user id')
elseif not user.suspended then
  return answer('unchanged')
end
return answer(reinstate(user.id, tick()))
