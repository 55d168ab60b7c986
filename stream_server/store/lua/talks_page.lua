-- parts: visibility talks paging
-- A piece of a user's talks: read only. After the walk's arguments: the user.
local uid = ARGV[9]
return read_page(function(member)
  return talk_json(uid, find_own_talk(uid, member))
end)
