-- parts: visibility talks paging
-- Read a page of a user's talks. Read only.
-- ARGV: 3 to 8 see parts/paging.lua, 9 user. Reply: the page with talks as JSON, see parts/paging.lua.
local uid = ARGV[9]
return read_page(function(member)
  local talk = find_own_talk(uid, member)
  return talk and talk_json(uid, talk)
end)
