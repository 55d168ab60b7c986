-- parts: visibility groups lists paging
-- Read a page of a sorted set of lists or groups, without those that the viewer may not see, and without lists on which
-- a user whom the viewer blocks has put the member. Read only.
-- ARGV: 3 to 8 see parts/paging.lua, 9 viewer, 10 the user who owns the lists or groups or is a member of them, 11
-- 'list' or 'group'. Reply: the page with lists or groups as JSON, see parts/paging.lua.
local viewer, find, as_json = ARGV[9], find_visible_group, group_json
if not can_see_user(viewer, ARGV[10]) then return refuse('NOT_FOUND user id') end
if ARGV[11] == 'list' then find, as_json = find_visible_list, list_json end
return read_page(function(member)
  local row = find(viewer, member)
  if row and row.uid ~= ARGV[10] and ARGV[11] == 'list' and not can_contact(viewer, row.uid) then return nil end
  return row and as_json(row)
end)
