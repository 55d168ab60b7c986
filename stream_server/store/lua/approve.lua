-- parts: people sight notices jobs follows
-- A user lets somebody follow who has asked to: user, and who asked. From here on it is a follow like any other.
local before = answered()
if before then
  return before
end
local target, source, refused = couple(ARGV[3], ARGV[4])
if refused then
  return refused
end
if not asks(source, target) then
  return refuse('NOT_FOUND request id')
end
local ms, seq, n = tick()
local position, fence
position, fence, ms, seq, n = join(source, target, ms, seq, n)
forget_ask(source, target)
notify(source.id, 'approve', target, '', '', ms, seq, n)
return answer(position, fence, recent(target.id))
