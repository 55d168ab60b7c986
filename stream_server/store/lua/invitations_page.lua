-- parts: groups paging
-- Read a page of the groups to which a user is invited. Read only.
-- ARGV: 3 to 8 see parts/paging.lua. Reply: the page with groups as JSON, see parts/paging.lua.
return read_page(function(member)
  local group = find_group(member)
  return group and group_json(group)
end)
