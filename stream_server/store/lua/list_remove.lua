-- parts: idempotent users actor visibility jobs lists
-- A user is taken off a list: who asks, its id, and the user, whom the owner may have blocked since. Not on it:
-- nothing happens, and nobody is told.
local list, denied = find_owned_list(ARGV[3], ARGV[4], 'id')
if denied then
  return denied
end
local user = can_see_user(list.uid, ARGV[5]) and find_user(ARGV[5])
if not user then
  return refuse('NOT_FOUND user uid')
end
local position, fence = remove_list_member(list, user, next_position())
return keep_reply((position or 'unchanged') .. ' ' .. list_json(list), fence or '', newest_statuses(user.id))
