-- parts: visibility talks paging
-- Read a page of the messages of a talk, without those that the viewer may not see. Read only.
-- ARGV: 3 to 8 see parts/paging.lua, 9 viewer, 10 talk. Reply: the page with messages as JSON, see parts/paging.lua.
local viewer = ARGV[9]
if not find_own_talk(viewer, ARGV[10]) then return refuse('NOT_FOUND talk id') end
local last = last_shown(viewer, ARGV[10])
return read_page(function(member)
  if not is_shown(member, last) then return nil end
  local kept = redis.call('HMGET', KEY.message .. member, 'uid', 'json')
  return message_visibility(viewer, kept[1]) >= ON_REQUEST and kept[2]
end)
