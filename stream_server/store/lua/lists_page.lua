-- parts: visibility lists paging
-- Read a page of a sorted set of lists, without those that the viewer may not see. Read only.
-- ARGV: 3 to 8 those of the part paging, 9 viewer, 10 the user who owns the lists or is on them.
-- Reply: that of the part paging, lists as JSON.
local viewer, uid = ARGV[9], ARGV[10]
if not can_see_user(viewer, uid) then
  return refuse('NOT_FOUND user id')
end
return read_page(function(member)
  local list = find_visible_list(viewer, member)
  return list and list_json(list)
end)
