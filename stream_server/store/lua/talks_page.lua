-- parts: visibility talks paging
-- A piece of a user's talks: read only. After the walk's arguments: the user.
local uid = ARGV[9]
return walk(function(member)
  return talk_json(uid, seen_talk(uid, member))
end)
