-- parts: idempotent users actor visibility statuses reactions notifications
-- Remove a user's like, also if the status has been hidden from the user since. Without a like, nothing changes.
-- ARGV: 3 user, 4 status. Reply: position or `unchanged`, and the number of likes.
local id = ARGV[4]
local row = find_status(id)
local liked = row and redis.call('ZSCORE', KEY.likes .. id, actor.id)
if not liked and not find_visible_status(actor.id, id) then return refuse('NOT_FOUND status') end
if not liked then return keep_reply('unchanged ' .. row.likes) end
with_counter_changed(row, 'likes', -1)
local position, now = append_entry('unlike', reaction_audience(actor.id, row), reaction_body(actor, row), next_position())
redis.call('ZREM', KEY.likes .. id, actor.id)
redis.call('ZREM', KEY.liked .. actor.id, id)
-- The time tells the expiry of statuses that an entry of the log shows this status.
redis.call('HSET', KEY.status .. id, 'likes', row.likes, 'touched', now)
withdraw_notification(row.uid, 'like', actor.id, id)
return keep_reply(position .. ' ' .. row.likes)
