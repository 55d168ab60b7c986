-- parts: idempotent users actor visibility talks
-- Accept or refuse a talk that a stranger opened. A talk that is accepted already stays so. There is no log entry.
-- ARGV: 3 user, 4 talk, 5 'accept' or 'refuse'. Reply: `answered` or `unchanged`.
local id = ARGV[4]
if not find_own_talk(actor.id, id) then return refuse('NOT_FOUND talk id') end
local last = has_as_request(actor.id, id)
if not last then return keep_reply('unchanged') end
if ARGV[5] == 'accept' then
  accept_talk(actor.id, id, last)
else
  redis.call('ZREM', KEY.talk_requests .. actor.id, id)
end
return keep_reply('answered')
