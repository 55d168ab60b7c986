-- Make a parked job due again. If the job does not exist, only remove its id.
-- ARGV: 3 job. Reply: 1 if the job was parked, otherwise 0.
local id = ARGV[3]
if not redis.call('ZSCORE', KEY.parked, id) then return 0 end
if redis.call('EXISTS', KEY.job .. id) == 1 then
  redis.call('HSET', KEY.job .. id, 'failures', '0')
  redis.call('ZADD', KEY.due, to_text(now_ms()), id)
end
redis.call('ZREM', KEY.parked, id)
return 1
