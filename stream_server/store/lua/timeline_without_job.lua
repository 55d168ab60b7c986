-- Find those statuses, wrongly on a timeline or missing from it, that no existing job will correct. Read only. ARGV: 3
-- 'home' or 'list', 4 owner, from 5 on ids of wrong or missing statuses. Reply: the ids that no job will correct.
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
