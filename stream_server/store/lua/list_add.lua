-- parts: idempotent users actor visibility jobs lists
-- A user is put on a list: who asks, its id, and the user. On it already: nothing happens, and nobody is told.
local list, denied = own_list(ARGV[3], ARGV[4], 'id', ARGV[5])
if denied then
  return denied
end
local user = reaches(list.uid, ARGV[5]) and person(ARGV[5])
if not user then
  return refuse('NOT_FOUND user uid')
end
local position, fence = enlist(list, user, tick())
return answer((position or 'unchanged') .. ' ' .. list_json(list), fence or '', recent(user.id))
