-- parts: jobs
-- Claim due jobs, each for JOB_LEASE_MS. If a pass of a refill began and did not end, the refill starts again, because
-- this pass may have added statuses that must be removed.
-- ARGV: 3 maximum number of jobs. Reply: ids and fences of the claimed jobs, alternating.
local claimed, now = {}, now_ms()

-- Claims a fan-out without a hash. Returns its fence, or nil if its status is deleted: then nothing is left to do.
local function claim_fan_out(id)
  local status = id:match('^status%-(%d+)$')
  local author = status and redis.call('HGET', KEY.status .. status, 'uid')
  return author and make_spread(status, author, now + JOB_LEASE_MS)
end

local function claim(id)
  local key = KEY.job .. id
  local kept = redis.call('HMGET', key, 'mode', 'begun')
  if not kept[1] then return claim_fan_out(id) end
  local fence = new_fence()
  redis.call('HSET', key, 'fence', fence)
  if kept[1] == 'refill' and kept[2] == '1' then
    redis.call('HSET', key, 'phase', '', 'score', '', 'member', '')
  end
  redis.call('ZADD', KEY.due, to_text(now + JOB_LEASE_MS), id)
  return fence
end

local function claim_each(from, upto)
  local most = to_text(tonumber(ARGV[3]) - #claimed / 2)
  for _, id in ipairs(redis.call('ZRANGE', KEY.due, from, upto, 'BYSCORE', 'LIMIT', 0, most)) do
    local fence = claim(id)
    if fence then
      claimed[#claimed + 1] = id
      claimed[#claimed + 1] = fence
    else
      redis.call('ZREM', KEY.due, id)
    end
  end
end
claim_each('-inf', to_text(now))
claim_each(LOWEST_ID, make_id(now - JOB_GRACE_MS, 0))
return claimed
