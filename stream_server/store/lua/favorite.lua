-- parts: idempotent users actor visibility statuses
-- Someone keeps a status for themselves: who, and its id. Nobody is told, so there is no entry.
if not find_visible_status(actor.id, ARGV[4]) then
  return refuse('NOT_FOUND status')
end
local ms = next_position()
redis.call('ZADD', KEY.favorites .. actor.id, 'NX', to_text(ms), ARGV[4])
return keep_reply('kept')
