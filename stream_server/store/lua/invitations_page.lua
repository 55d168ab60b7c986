-- parts: visibility groups paging
-- Read a page of the groups to which a user is invited. Read only.
-- ARGV: 3 to 8 see parts/paging.lua, 9 the user. Reply: the page with groups as JSON, see parts/paging.lua.
local uid = ARGV[9]
return read_page(function(member)
  local group = find_inviting_group(uid, member)
  return group and group_json(group)
end)
