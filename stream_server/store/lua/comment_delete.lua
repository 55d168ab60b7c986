-- parts: idempotent users actor visibility statuses comments notifications
-- Delete a comment. The user must have written the comment or the status. The log entry goes to the audience of the
-- comment's own entry, even if a user has become protected since then. See removal_audience for one that has opened.
-- ARGV: 3 user, 4 comment. Reply: position.
local comment, row, under = find_comment(actor.id, ARGV[4])
local own = comment and comment.uid == actor.id
if not comment or (not own and under == HIDDEN) then return refuse('NOT_FOUND comment') end
if not own and row.uid ~= actor.id then return refuse('NOT_YOURS comment') end
local id, status = comment.id, row.id
with_counter_changed(row, 'comments', -1)
local body = '{"wire":{"comment":{"id":"' .. id .. '","uid":"' .. comment.uid .. '","status":"' .. status
  .. '","deleted":true},"status":' .. embedded_json(row) .. '},"facts":{"comment":' .. comment.json .. '}}'
local position, now = append_entry('uncomment', removal_audience(comment.audience, id), body, next_position())
redis.call('DEL', KEY.comment .. id)
redis.call('ZREM', KEY.comments .. status, id)
-- The time tells the expiry of statuses that an entry of the log shows this status.
redis.call('HSET', KEY.status .. status, 'comments', row.comments, 'touched', now)
withdraw_notification(row.uid, 'comment', comment.uid, id)
for who in comment.mentioned:gmatch('%S+') do
  withdraw_notification(who, 'mention', comment.uid, 'c' .. id)
end
return keep_reply(position)
