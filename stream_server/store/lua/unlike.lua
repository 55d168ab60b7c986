-- parts: idempotent users actor visibility statuses reactions notifications
-- Someone likes a status no longer: who, and its id. One's own like can be taken back as long as the status is there,
-- whatever has come between since. Not so before: nothing happens. The answer's last word is how many like it now.
local id = ARGV[4]
local row = find_status(id)
local liked = row and redis.call('ZSCORE', KEY.likes .. id, actor.id)
if not liked and not find_visible_status(actor.id, id) then
  return refuse('NOT_FOUND status')
end
if not liked then
  return keep_reply('unchanged ' .. row.likes)
end
local ms, seq, n = next_position()
with_counter_changed(row, 'likes', -1)
local position = append_entry('unlike', reaction_audience(actor.id, row), reaction_body(actor, row), ms, seq, n)
redis.call('ZREM', KEY.likes .. id, actor.id)
redis.call('ZREM', KEY.liked .. actor.id, id)
redis.call('HINCRBY', KEY.status .. id, 'likes', -1)
withdraw_notification(row.uid, 'like', actor.id, id)
return keep_reply(position .. ' ' .. row.likes)
