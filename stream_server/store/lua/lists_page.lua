-- parts: visibility lists paging
-- A piece of a sorted set of lists, those that a viewer may see: read only. After the walk's arguments: viewer, and
-- the user whose lists they are, or who is on them.
local viewer, uid = ARGV[9], ARGV[10]
if not can_see_user(viewer, uid) then
  return refuse('NOT_FOUND user id')
end
return read_page(function(member)
  local list = find_visible_list(viewer, member)
  return list and list_json(list)
end)
