-- parts: idempotent users actor visibility statuses
-- Someone keeps a status no longer: who, and its id. What is kept can be dropped also when it is not to be seen any
-- more, or gone.
local kept = redis.call('ZSCORE', KEY.favorites .. actor.id, ARGV[4])
if not kept and not find_visible_status(actor.id, ARGV[4]) then
  return refuse('NOT_FOUND status')
end
if kept then
  -- Changes nothing, and is what a full Redis refuses: it would let the removal through, and not the answer's keeping.
  redis.call('ZADD', KEY.favorites .. actor.id, 'XX', kept, ARGV[4])
  redis.call('ZREM', KEY.favorites .. actor.id, ARGV[4])
end
return keep_reply('dropped')
