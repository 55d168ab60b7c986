-- parts: ingested users suspension audit
-- Suspend a user, or end a suspension, as another site says. ARGV: 3 foreign id, 4 user of the token, 5 'suspend' or
-- 'reinstate'. Reply: position and the user's id.
local refused = replace_foreign_id(3, 'user', 'user', 'user')
if refused then return refused end
local kind, user = ARGV[5], find_user(ARGV[3])
if kind == 'suspend' and user.id == ARGV[4] then return refuse('ONESELF user') end
if user.suspended == (kind == 'suspend') then return keep_unchanged(user.id) end
local position = change_suspension(kind, user.id, next_position())
audit(ARGV[4], kind, user.id, '')
return keep_ingested(position .. ' ' .. user.id)
