-- Two persons, of whom the first does something to the second: a write's first arguments. Whom one may not know of,
-- because of being blocked or of a suspension, is as good as not there. Needs the parts users, visibility and actor.
local source, target = actor, nil
if source.id == ARGV[4] then
  return refuse('ONESELF id')
end
target = can_see_user(source.id, ARGV[4]) and find_user(ARGV[4])
if not target then
  return refuse('NOT_FOUND user id')
end
