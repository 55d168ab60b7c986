-- parts: users visibility statuses lists groups paging
-- Read a page of a sorted set of users, each with `since`, the time in the set. Read only.
-- ARGV: 3 to 8 see parts/paging.lua, 9 viewer, 10 kind and 11 id of the set's owner. The viewer must be allowed to see
-- the owner. Kinds: 'user', 'status', 'list', 'group', '' for none, 'admin' for none and an administrator who sees all
-- users.
-- Reply: the page with users as JSON, see parts/paging.lua.
local viewer, owner_kind, owner = ARGV[9], ARGV[10], ARGV[11]
local row = owner_kind == 'status' and find_visible_status(viewer, owner)
if owner_kind == 'user' and not can_see_user(viewer, owner) then return refuse('NOT_FOUND user') end
if owner_kind == 'status' and not row then return refuse('NOT_FOUND status') end
if owner_kind == 'list' and not find_visible_list(viewer, owner) then return refuse('NOT_FOUND list id') end
if owner_kind == 'group' and not find_visible_group(viewer, owner) then return refuse('NOT_FOUND group id') end

-- A reaction to a status is as visible as a status by the same user there; otherwise the user's card decides.
local function is_visible(member)
  if row then return status_visibility(viewer, member, row.group) ~= HIDDEN end
  return owner_kind == 'admin' or can_see_user(viewer, member)
end
return read_page(function(member, score)
  return is_visible(member) and user_since_json(member, score)
end)
