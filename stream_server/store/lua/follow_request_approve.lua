-- parts: idempotent users visibility actor source_and_target notifications jobs follows
-- Source lets target follow, who has asked to. From here on it is a follow like any other.
if not asks(target, source) then
  return refuse('NOT_FOUND request id')
end
local ms, seq, n = tick()
local position, fence
position, fence, ms, seq, n = join(target, source, ms, seq, n)
forget_ask(target, source)
notify(target.id, 'approve', source, '', '', ms, seq, n)
return answer(position, fence, recent(source.id))
