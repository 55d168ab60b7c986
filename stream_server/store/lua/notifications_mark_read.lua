-- parts: idempotent users actor visibility statuses notification_subjects notifications
-- Mark a user's notifications up to an id as read. An id below the mark changes nothing. There is no log entry.
-- ARGV: 3 user, 4 id. Reply: how many notifications remain unread, after
-- `unchanged` if nothing changed.
local id, made = tonumber(ARGV[4]), redis.call('HMGET', KEY.meta, 'ms', 'seq')
-- A mark in the future would count notifications as read that do not exist yet.
if not made[1] or id > tonumber(make_id(tonumber(made[1]), tonumber(made[2]))) then
  return refuse('NOT_FOUND notification id')
end
local mark = get_read_mark(actor.id)
if id <= tonumber(mark) then return keep_reply('unchanged ' .. to_text(count_unread(actor.id, mark))) end
mark = to_text(id)
redis.call('HSET', KEY.user .. actor.id, 'notices_read', mark)
return keep_reply(to_text(count_unread(actor.id, mark)))
