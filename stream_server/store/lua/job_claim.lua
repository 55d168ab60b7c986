-- parts: jobs
-- Claim due jobs, each for JOB_LEASE_MS. If a pass of a refill began and did not end, the refill starts again, because
-- this pass may have added statuses that must be removed.
-- ARGV: 3 maximum number of jobs. Reply: ids and fences of the claimed jobs, alternating.
local claimed, now = {}, now_ms()
for _, id in ipairs(redis.call('ZRANGE', KEY.due, '-inf', to_text(now), 'BYSCORE', 'LIMIT', 0, ARGV[3])) do
  local key = KEY.job .. id
  local kept = redis.call('HMGET', key, 'mode', 'begun')
  if not kept[1] then
    redis.call('ZREM', KEY.due, id)
  else
    local fence = new_fence()
    redis.call('HSET', key, 'fence', fence)
    if kept[1] == 'refill' and kept[2] == '1' then
      redis.call('HSET', key, 'phase', '', 'score', '', 'member', '')
    end
    redis.call('ZADD', KEY.due, to_text(now + JOB_LEASE_MS), id)
    claimed[#claimed + 1] = id
    claimed[#claimed + 1] = fence
  end
end
return claimed
