-- parts: idempotent users visibility actor source_and_target
-- Source wants to hear no more of target, who is not told. Already so: nothing happens.
if redis.call('ZSCORE', KEY.mutes .. source.id, target.id) then
  return answer('unchanged')
end
local ms, seq, n = tick()
local position = append('mute', 'users:' .. source.id, pair_body(source, target), ms, seq, n)
redis.call('ZADD', KEY.mutes .. source.id, text(ms), target.id)
return answer(position)
