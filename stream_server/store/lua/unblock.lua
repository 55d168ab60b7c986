-- parts: idempotent users visibility actor source_and_target
-- Source does not block target any more. What the block has cut stays cut. Not so before: nothing happens.
if not redis.call('ZSCORE', KEY.blocks .. source.id, target.id) then
  return keep_reply('unchanged')
end
local ms, seq, n = next_position()
local position = append_entry('unblock', 'users:' .. source.id, pair_body(source, target), ms, seq, n)
redis.call('ZREM', KEY.blocks .. source.id, target.id)
redis.call('ZREM', KEY.blockers .. target.id, source.id)
return keep_reply(position)
