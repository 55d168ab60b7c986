-- parts: idempotent users actor visibility statuses reactions notifications
-- Someone likes a status no longer: who, and its id. One's own like can be taken back as long as the status is there,
-- whatever has come between since. Not so before: nothing happens. The answer's last word is how many like it now.
local id = ARGV[4]
local row = status_row(id)
local liked = row and redis.call('ZSCORE', KEY.likes .. id, actor.id)
if not liked and not seen(actor.id, id) then
  return refuse('NOT_FOUND status')
end
if not liked then
  return answer('unchanged ' .. row.likes)
end
local ms, seq, n = tick()
moved(row, 'likes', -1)
local position = append('unlike', deed_audience(actor.id, row), deed_body(actor, row), ms, seq, n)
redis.call('ZREM', KEY.likes .. id, actor.id)
redis.call('ZREM', KEY.liked .. actor.id, id)
redis.call('HINCRBY', KEY.status .. id, 'likes', -1)
unnotify(row.uid, 'like', actor.id, id)
return answer(position .. ' ' .. row.likes)
