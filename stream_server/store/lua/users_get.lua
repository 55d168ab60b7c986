-- parts: users visibility
-- Read those of the given users whom the viewer may see. Read only.
-- ARGV: 3 viewer, from 4 on ids, or `@` followed by a login in lower case. Reply: users as JSON.
local found = {}
for at = 4, #ARGV do
  local login = ARGV[at]:match('^@(.*)$')
  local id = login and redis.call('HGET', KEY.logins, login) or ARGV[at]
  if id and can_see_user(ARGV[3], id) then found[#found + 1] = user_json(find_user(id)) end
end
return found
