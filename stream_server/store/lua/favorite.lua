-- parts: idempotent users actor visibility statuses
-- Add a status to a user's favorites. Favorites are private, so there is no log entry.
-- ARGV: 3 user, 4 status. Reply: `kept` or `unchanged`.
if not find_visible_status(actor.id, ARGV[4]) then return refuse('NOT_FOUND status') end
local ms = next_position()
local is_new = redis.call('ZADD', KEY.favorites .. actor.id, 'NX', to_text(ms), ARGV[4]) == 1
return keep_reply(is_new and 'kept' or 'unchanged')
