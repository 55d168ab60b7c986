-- parts: ingested ingested_pair users relation
-- End a block, mute a user or end a mute, as another site says. ARGV: 3 source and 4 target, foreign ids; 5 'unblock',
-- 'mute' or 'unmute'. Reply: position and the target's id.
local position = change_relation(ARGV[5], find_user(ARGV[3]), find_user(ARGV[4]))
if not position then return keep_unchanged(ARGV[4]) end
return keep_ingested(position .. ' ' .. ARGV[4])
