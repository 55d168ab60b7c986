-- parts: visibility lists paging
-- A piece of a sorted set of lists, those that a viewer may see: read only. After the walk's arguments: viewer, and
-- the user whose lists they are, or who is on them.
local viewer, uid = ARGV[9], ARGV[10]
if not knows(viewer, uid) then
  return refuse('NOT_FOUND user id')
end
return walk(function(member)
  local list = seen_list(viewer, member)
  return list and list_json(list)
end)
