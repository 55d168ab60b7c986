-- parts: visibility talks paging
-- Read a page of a user's talks. Read only.
-- ARGV: 3 to 8 those of the part paging, 9 user. Reply: that of the part paging, talks as JSON.
local uid = ARGV[9]
return read_page(function(member)
  return talk_json(uid, find_own_talk(uid, member))
end)
