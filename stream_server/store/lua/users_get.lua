-- parts: users visibility
-- Of these users those whom a viewer may know of, as JSON: read only. Viewer, then ids, or logins in lower case behind
-- an `@`.
local found = {}
for at = 4, #ARGV do
  local login = ARGV[at]:match('^@(.*)$')
  local id = login and redis.call('HGET', KEY.logins, login) or ARGV[at]
  if id and knows(ARGV[3], id) then
    found[#found + 1] = person_json(person(id))
  end
end
return found
