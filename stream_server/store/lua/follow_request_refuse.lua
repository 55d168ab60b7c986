-- parts: idempotent users visibility actor source_and_target notifications follows
-- Source does not let target follow, who has asked to, and may ask again.
if not asks(target, source) then
  return refuse('NOT_FOUND request id')
end
return answer(unask(target, source, tick()))
