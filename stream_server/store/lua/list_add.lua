-- parts: idempotent users actor visibility jobs lists
-- Add a user to a list. Adding a member again changes nothing and makes no entry.
-- ARGV: 3 user who acts, 4 list, 5 new member.
-- Reply: position or `unchanged`, and JSON of the list; fence of the timeline's job ('' for none), the member's newest
-- statuses.
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
