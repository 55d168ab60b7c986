-- parts: visibility groups paging
-- Read a page of a sorted set of groups, without those that the viewer may not see. Read only.
-- ARGV: 3 to 8 those of the part paging, 9 viewer, 10 the user who is in the groups.
-- Reply: that of the part paging, groups as JSON.
local viewer, uid = ARGV[9], ARGV[10]
if not can_see_user(viewer, uid) then
  return refuse('NOT_FOUND user id')
end
return read_page(function(member)
  local group = find_visible_group(viewer, member)
  return group and group_json(group)
end)
