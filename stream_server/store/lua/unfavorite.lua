-- parts: idempotent users actor visibility statuses
-- Remove a status from a user's favorites, also if the status is deleted or hidden.
-- ARGV: 3 user, 4 status. Reply: `dropped` or `unchanged`.
local kept = redis.call('ZSCORE', KEY.favorites .. actor.id, ARGV[4])
if not kept and not find_visible_status(actor.id, ARGV[4]) then return refuse('NOT_FOUND status') end
if not kept then return keep_reply('unchanged') end
-- This ZADD changes nothing, but a full Redis refuses it before it removes the favorite without keeping the reply.
redis.call('ZADD', KEY.favorites .. actor.id, 'XX', kept, ARGV[4])
redis.call('ZREM', KEY.favorites .. actor.id, ARGV[4])
return keep_reply('dropped')
