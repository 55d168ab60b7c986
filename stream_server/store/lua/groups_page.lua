-- parts: visibility groups paging
-- A piece of a sorted set of groups, those that a viewer may see: read only. After the walk's arguments: viewer, and
-- the user who is in them.
local viewer, uid = ARGV[9], ARGV[10]
if not can_see_user(viewer, uid) then
  return refuse('NOT_FOUND user id')
end
return read_page(function(member)
  local group = find_visible_group(viewer, member)
  return group and group_json(group)
end)
