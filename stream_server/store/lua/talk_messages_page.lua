-- parts: visibility talks paging
-- A piece of a talk's messages, those that a viewer sees: read only. After the walk's arguments: viewer, and the talk.
local viewer = ARGV[9]
if not seen_talk(viewer, ARGV[10]) then
  return refuse('NOT_FOUND talk id')
end
return walk(function(member)
  local kept = redis.call('HMGET', KEY.message .. member, 'uid', 'json')
  return message_sight(viewer, kept[1]) >= QUIET and kept[2]
end)
