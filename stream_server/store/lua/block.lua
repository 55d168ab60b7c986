-- parts: idempotent users visibility actor source_and_target notifications jobs follows
-- Source blocks target. Neither follows the other any more, nor asks to: each is an entry of its own, before that of
-- the block. Already so: nothing happens. Lists keep their members, of whom neither sees the other's words.
if redis.call('ZSCORE', KEY.blocks .. source.id, target.id) then
  return keep_reply('unchanged', '', {}, '', {})
end

-- One of the two follows the other no longer, nor asks to; the fence of the removal, or ''.
local function end_relation(who, other)
  local ms, seq, n = next_position()
  if redis.call('ZSCORE', KEY.following .. who.id, other.id) then
    local _, fence = remove_follow(who, other, ms, seq, n)
    return fence
  elseif has_requested(who, other) then
    remove_follow_request(who, other, ms, seq, n)
  end
  return ''
end

local fence, fence_back = end_relation(source, target), end_relation(target, source)
local ms, seq, n = next_position()
local position = append_entry('block', 'users:' .. source.id, pair_body(source, target), ms, seq, n)
redis.call('ZADD', KEY.blocks .. source.id, to_text(ms), target.id)
redis.call('ZADD', KEY.blockers .. target.id, to_text(ms), source.id)
return keep_reply(position, fence, fence ~= '' and newest_statuses(target.id) or {}, fence_back,
  fence_back ~= '' and newest_statuses(source.id) or {})
