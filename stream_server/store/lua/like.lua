-- parts: idempotent users actor visibility statuses reactions notification_subjects notifications
-- Like a status. A repeated like changes nothing and sends no notification.
-- ARGV: 3 user, 4 status. Reply: position or `unchanged`, and the number of likes.
local id = ARGV[4]
local row
row, refused = find_reactable_status(actor.id, id)
if refused then return refused end
if redis.call('ZSCORE', KEY.likes .. id, actor.id) then return keep_reply('unchanged ' .. row.likes) end
local ms, seq, n = next_position()
with_counter_changed(row, 'likes', 1)
local position, now = append_entry('like', reaction_audience(actor.id, row), reaction_body(actor, row), ms, seq, n)
set_member(KEY.likes .. id, actor.id, now)
set_member(KEY.liked .. actor.id, id, now)
redis.call('HINCRBY', KEY.status .. id, 'likes', 1)
local about = status_subject_json(row.uid, id)
if about then notify(row.uid, 'like', actor, id, about, ms, seq, n) end
return keep_reply(position .. ' ' .. row.likes)
