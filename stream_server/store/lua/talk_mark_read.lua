-- parts: idempotent users actor visibility talks
-- Mark a talk as read up to a message. A message below the mark changes nothing. There is no log entry. ARGV: 3 user, 4
-- talk, 5 message. Reply: the last read message and the number of unread messages, after `unchanged` if nothing changed.
local uid, talk, id = actor.id, ARGV[4], ARGV[5]
if not find_own_talk(uid, talk) then return refuse('NOT_FOUND talk id') end
local author = redis.call('ZSCORE', KEY.messages .. talk, id) and redis.call('HGET', KEY.message .. id, 'uid')
if not author or not is_shown(id, last_shown(uid, talk)) or message_visibility(uid, author) == HIDDEN then
  return refuse('NOT_FOUND message id')
end
local mark = redis.call('HGET', KEY.marks .. talk, uid)
local is_newer = not mark or tonumber(id) > tonumber(mark)
if is_newer then
  redis.call('HSET', KEY.marks .. talk, uid, id)
  mark = id
end
return keep_reply((is_newer and '' or 'unchanged ') .. mark .. ' ' .. to_text(count_unread(uid, talk)))
