-- parts: idempotent users actor visibility statuses
-- Someone keeps a status for themselves: who, and its id. Nobody is told, so there is no entry.
if not seen(actor.id, ARGV[4]) then
  return refuse('NOT_FOUND status')
end
local ms = tick()
redis.call('ZADD', KEY.favorites .. actor.id, 'NX', text(ms), ARGV[4])
return answer('kept')
