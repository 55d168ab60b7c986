-- parts: idempotent users actor visibility jobs lists
-- A user is put on a list: who asks, its id, and the user. On it already: nothing happens, and nobody is told.
local list, denied = find_owned_list(ARGV[3], ARGV[4], 'id', ARGV[5])
if denied then
  return denied
end
local user = can_contact(list.uid, ARGV[5]) and find_user(ARGV[5])
if not user then
  return refuse('NOT_FOUND user uid')
end
local position, fence = add_list_member(list, user, next_position())
return keep_reply((position or 'unchanged') .. ' ' .. list_json(list), fence or '', newest_statuses(user.id))
