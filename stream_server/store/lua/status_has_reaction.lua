-- parts: visibility statuses
-- Read whether a user likes a status or has it as a favorite. Read only.
-- ARGV: 3 viewer, 4 status, 5 user, 6 'likes' or 'favorites'. Reply: 1 or 0.
local viewer, id, uid = ARGV[3], ARGV[4], ARGV[5]
local row = find_visible_status(viewer, id)
if not row then return refuse('NOT_FOUND status') end
if ARGV[6] == 'favorites' then return redis.call('ZSCORE', KEY.favorites .. uid, id) and 1 or 0 end
if status_visibility(viewer, uid, row.group) == HIDDEN then return refuse('NOT_FOUND user') end
return redis.call('ZSCORE', KEY.likes .. id, uid) and 1 or 0
