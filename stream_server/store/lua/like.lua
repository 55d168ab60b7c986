-- parts: idempotent users actor visibility statuses reactions notification_subjects notifications
-- Someone likes a status: who, and its id. Already so: nothing happens, and nobody is told. The answer's last word is
-- how many like it now.
local id = ARGV[4]
local row
row, refused = open_to(actor.id, id)
if refused then
  return refused
end
if redis.call('ZSCORE', KEY.likes .. id, actor.id) then
  return answer('unchanged ' .. row.likes)
end
local ms, seq, n = tick()
local when = text(ms)
moved(row, 'likes', 1)
local position = append('like', deed_audience(actor.id, row), deed_body(actor, row), ms, seq, n)
redis.call('ZADD', KEY.likes .. id, when, actor.id)
redis.call('ZADD', KEY.liked .. actor.id, when, id)
redis.call('HINCRBY', KEY.status .. id, 'likes', 1)
local about = about_status(row.uid, id)
if about then
  notify(row.uid, 'like', actor, id, about, ms, seq, n)
end
return answer(position .. ' ' .. row.likes)
