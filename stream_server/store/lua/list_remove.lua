-- parts: idempotent users actor visibility jobs lists
-- A user is taken off a list: who asks, its id, and the user, whom the owner may have blocked since. Not on it:
-- nothing happens, and nobody is told.
local list, denied = own_list(ARGV[3], ARGV[4], 'id')
if denied then
  return denied
end
local user = knows(list.uid, ARGV[5]) and person(ARGV[5])
if not user then
  return refuse('NOT_FOUND user uid')
end
local position, fence = delist(list, user, tick())
return answer((position or 'unchanged') .. ' ' .. list_json(list), fence or '', recent(user.id))
