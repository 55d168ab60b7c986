-- parts: idempotent users actor visibility jobs lists
-- Add a user to a list or remove a user from it. Removing works also if the owner blocks the user. If nothing changes,
-- there is no log entry.
-- ARGV: 3 user who acts, 4 list, 5 member, 6 'list_add' or 'list_remove'.
-- Reply: position or `unchanged`; JSON of the list, fence of the job of the list's timeline ('' for none), the
-- member's newest statuses.
local kind, uid = ARGV[6], ARGV[5]
local list, denied = find_owned_list(ARGV[3], ARGV[4], 'id', kind == 'list_add' and uid)
if denied then return denied end
local allowed = kind == 'list_add' and can_contact or can_see_user
local user = allowed(list.uid, uid) and find_user(uid)
if not user then return refuse('NOT_FOUND user uid') end
local position, fence = change_list_member(kind, list, user, next_position())
return keep_reply(position or 'unchanged', list_json(list), fence or '', newest_statuses(user.id))
