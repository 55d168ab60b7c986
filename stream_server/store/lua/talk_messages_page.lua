-- parts: visibility talks paging
-- Read a page of a talk's messages that the viewer sees. Read only.
-- ARGV: 3 to 8 those of the part paging, 9 viewer, 10 talk. Reply: that of the part paging, messages as JSON.
local viewer = ARGV[9]
if not find_own_talk(viewer, ARGV[10]) then
  return refuse('NOT_FOUND talk id')
end
return read_page(function(member)
  local kept = redis.call('HMGET', KEY.message .. member, 'uid', 'json')
  return message_visibility(viewer, kept[1]) >= ON_REQUEST and kept[2]
end)
