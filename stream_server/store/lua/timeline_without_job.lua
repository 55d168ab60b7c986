-- Find those statuses, wrongly on a timeline or missing from it, that no existing job will correct. Read only. ARGV: 3
-- 'home' or 'list', 4 owner, from 5 on ids of wrong or missing statuses. Reply: the ids that no job will correct.
local timelines, owner = ARGV[3], ARGV[4]
local found = {}
-- A timeline that is asleep need not be right. It is made again when its user comes back.
if timelines == 'home' and redis.call('ZSCORE', KEY.asleep, owner) then return found end
if redis.call('EXISTS', KEY.job .. 'refill-' .. timelines .. '-' .. owner, KEY.job .. 'drop-list-' .. owner) > 0 then
  return found
end
for at = 5, #ARGV do
  local author = redis.call('HGET', KEY.status .. ARGV[at], 'uid') or ''
  local fan_out = 'status-' .. ARGV[at]
  if redis.call('EXISTS', KEY.job .. fan_out, KEY.job .. timelines .. '-' .. owner .. '-' .. author) == 0
    and not redis.call('ZSCORE', KEY.due, fan_out) then
    found[#found + 1] = ARGV[at]
  end
end
-- Statuses that left because of their age stay on timelines until the expiry forgets them, so they are no fault.
local faults, expired_below = {}, tonumber(redis.call('HGET', KEY.expiry, 'below') or '0')
for _, id in ipairs(found) do
  if tonumber(id) >= expired_below or redis.call('EXISTS', KEY.status .. id) == 1 then faults[#faults + 1] = id end
end
return faults
