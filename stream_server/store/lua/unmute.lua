-- parts: idempotent users visibility actor source_and_target
-- Source wants to hear of target again. Not muted before: nothing happens.
if not redis.call('ZSCORE', KEY.mutes .. source.id, target.id) then
  return answer('unchanged')
end
local ms, seq, n = tick()
local position = append('unmute', 'users:' .. source.id, pair_body(source, target), ms, seq, n)
redis.call('ZREM', KEY.mutes .. source.id, target.id)
return answer(position)
