-- parts: visibility talks
-- Read one message of a talk. Read only. ARGV: 3 viewer, 4 talk, 5 message. Reply: the message as JSON.
local viewer, talk, id = ARGV[3], ARGV[4], ARGV[5]
if not find_own_talk(viewer, talk) then return refuse('NOT_FOUND talk id') end
local kept = redis.call('HMGET', KEY.message .. id, 'uid', 'json', 'talk')
if kept[3] ~= talk or not is_shown(id, last_shown(viewer, talk)) or message_visibility(viewer, kept[1]) == HIDDEN then
  return refuse('NOT_FOUND message message')
end
return kept[2]
