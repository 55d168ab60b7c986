-- parts: idempotent users visibility actor source_and_target notifications jobs follows
-- Source blocks target. Neither follows the other any more, nor asks to: each is an entry of its own, before that of
-- the block. Already so: nothing happens. Lists keep their members, of whom neither sees the other's words.
if redis.call('ZSCORE', KEY.blocks .. source.id, target.id) then
  return answer('unchanged', '', {}, '', {})
end

-- One of the two follows the other no longer, nor asks to; the fence of the removal, or ''.
local function part(who, other)
  local ms, seq, n = tick()
  if redis.call('ZSCORE', KEY.following .. who.id, other.id) then
    local _, fence = cut(who, other, ms, seq, n)
    return fence
  elseif asks(who, other) then
    unask(who, other, ms, seq, n)
  end
  return ''
end

local fence, fence_back = part(source, target), part(target, source)
local ms, seq, n = tick()
local position = append('block', 'users:' .. source.id, pair_body(source, target), ms, seq, n)
redis.call('ZADD', KEY.blocks .. source.id, text(ms), target.id)
redis.call('ZADD', KEY.blockers .. target.id, text(ms), source.id)
return answer(position, fence, fence ~= '' and recent(target.id) or {}, fence_back,
  fence_back ~= '' and recent(source.id) or {})
