-- Of these statuses, which are on a timeline against the truth, or are not on it against the truth, those for which no
-- job is left that will see to it: read only. 'home' or 'list', the owner, then ids.
local timelines, owner = ARGV[3], ARGV[4]
local found = {}
if redis.call('EXISTS', KEY.job .. 'refill-' .. timelines .. '-' .. owner, KEY.job .. 'drop-list-' .. owner) > 0 then
  return found
end
for at = 5, #ARGV do
  local author = redis.call('HGET', KEY.status .. ARGV[at], 'uid') or ''
  if redis.call('EXISTS', KEY.job .. 'status-' .. ARGV[at],
    KEY.job .. timelines .. '-' .. owner .. '-' .. author) == 0 then
    found[#found + 1] = ARGV[at]
  end
end
return found
