-- parts: idempotent users visibility actor source_and_target
-- Mute a user. Only the source gets the entry. A repeated mute changes nothing.
-- ARGV: 3 source, 4 target. Reply: position or `unchanged`.
if redis.call('ZSCORE', KEY.mutes .. source.id, target.id) then
  return keep_reply('unchanged')
end
local ms, seq, n = next_position()
local position = append_entry('mute', 'users:' .. source.id, pair_body(source, target), ms, seq, n)
redis.call('ZADD', KEY.mutes .. source.id, to_text(ms), target.id)
return keep_reply(position)
