-- parts: people sight notices jobs follows
-- A user does not let somebody follow who has asked to: user, and who asked. It may be asked again.
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
return answer(unask(source, target, ms, seq, n))
