-- parts: idempotent users actor visibility jobs lists
-- Remove a user from a list, also if the owner has blocked the user since. Removing a user who is not on the list
-- changes nothing and makes no entry.
-- ARGV: 3 user who acts, 4 list, 5 member.
-- Reply: position or `unchanged`, and JSON of the list; fence of the timeline's job ('' for none), the member's newest
-- statuses.
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
