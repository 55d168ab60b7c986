-- Two users: the source (ARGV 3) acts on the target (ARGV 4). A target who blocks the source or is suspended is refused
-- like an unknown one.
local source, target = actor, nil
if source.id == ARGV[4] then return refuse('ONESELF id') end
target = find_user(ARGV[4])
if not target or target.suspended or redis.call('ZSCORE', KEY.blockers .. source.id, target.id) then
  return refuse('NOT_FOUND user id')
end
