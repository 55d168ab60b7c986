-- parts: people standing
-- A user is suspended: administrator, user. Already so: nothing happens.
local before = answered()
if before then
  return before
end
local admin, refused = writer(ARGV[3])
if refused then
  return refused
end
local user = person(ARGV[4])
if not user then
  return refuse('NOT_FOUND user id')
elseif user.id == admin.id then
  return refuse('ONESELF id')
elseif user.suspended then
  return answer('unchanged')
end
return answer(suspend(user.id, tick()))
