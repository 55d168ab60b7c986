-- parts: idempotent users actor visibility talks
-- Mark a talk as read up to a message. A message below the mark changes nothing. There is no log entry. ARGV: 3 user, 4
-- talk, 5 message. Reply: JSON with `read` (last read message) and `unread` (number of unread messages).
local uid, talk, id = actor.id, ARGV[4], ARGV[5]
if not find_own_talk(uid, talk) then return refuse('NOT_FOUND talk id') end
local author = redis.call('ZSCORE', KEY.messages .. talk, id) and redis.call('HGET', KEY.message .. id, 'uid')
if not author or message_visibility(uid, author) == HIDDEN then return refuse('NOT_FOUND message id') end
local mark = redis.call('HGET', KEY.marks .. talk, uid)
if not mark or tonumber(id) > tonumber(mark) then
  redis.call('HSET', KEY.marks .. talk, uid, id)
  mark = id
end
return keep_reply('{"read":"' .. mark .. '"' .. format(',"unread":%d}', count_unread(uid, talk)))
