-- parts: visibility talks paging
-- A piece of a talk's messages, those that a viewer sees: read only. After the walk's arguments: viewer, and the talk.
local viewer = ARGV[9]
if not find_own_talk(viewer, ARGV[10]) then
  return refuse('NOT_FOUND talk id')
end
return read_page(function(member)
  local kept = redis.call('HMGET', KEY.message .. member, 'uid', 'json')
  return message_visibility(viewer, kept[1]) >= ON_REQUEST and kept[2]
end)
