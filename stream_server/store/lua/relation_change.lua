-- parts: idempotent users actor source_and_target
-- Mute a user, end a mute, or end a block: the source (ARGV 3) does this to the target (ARGV 4). Only the source gets
-- the log entry. A repetition changes nothing. Ending a block does not restore follows.
-- ARGV: 3 source, 4 target, 5 'mute', 'unmute' or 'unblock'. Reply: position or `unchanged`.
local kind = ARGV[5]
local key = (kind == 'unblock' and KEY.blocks or KEY.mutes) .. source.id
local is_new = not redis.call('ZSCORE', key, target.id)
if is_new ~= (kind == 'mute') then return keep_reply('unchanged') end
local position, now = append_entry(kind, 'users:' .. source.id, pair_body(source, target), next_position())
set_member(key, target.id, is_new and now)
if kind == 'unblock' then set_member(KEY.blockers .. target.id, source.id) end
return keep_reply(position)
