-- parts: idempotent users visibility actor source_and_target
-- End a block. The follows that the block ended do not come back. Without a block it changes nothing.
-- ARGV: 3 source, 4 target. Reply: position or `unchanged`.
if not redis.call('ZSCORE', KEY.blocks .. source.id, target.id) then
  return keep_reply('unchanged')
end
local ms, seq, n = next_position()
local position = append_entry('unblock', 'users:' .. source.id, pair_body(source, target), ms, seq, n)
redis.call('ZREM', KEY.blocks .. source.id, target.id)
redis.call('ZREM', KEY.blockers .. target.id, source.id)
return keep_reply(position)
