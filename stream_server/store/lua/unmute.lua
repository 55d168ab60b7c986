-- parts: idempotent users visibility actor source_and_target
-- End a mute. Without a mute it changes nothing.
-- ARGV: 3 source, 4 target. Reply: position or `unchanged`.
if not redis.call('ZSCORE', KEY.mutes .. source.id, target.id) then
  return keep_reply('unchanged')
end
local ms, seq, n = next_position()
local position = append_entry('unmute', 'users:' .. source.id, pair_body(source, target), ms, seq, n)
redis.call('ZREM', KEY.mutes .. source.id, target.id)
return keep_reply(position)
