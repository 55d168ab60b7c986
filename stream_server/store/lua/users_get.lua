-- parts: users visibility
-- Of these users those whom a viewer may know of, as JSON: read only. Viewer, then ids, or logins in lower case behind
-- an `@`.
local found = {}
for at = 4, #ARGV do
  local login = ARGV[at]:match('^@(.*)$')
  local id = login and redis.call('HGET', KEY.logins, login) or ARGV[at]
  if id and can_see_user(ARGV[3], id) then
    found[#found + 1] = user_json(find_user(id))
  end
end
return found
