-- parts: jobs queue
-- What hung on a status that is gone, or on a list, up to PASS of it: job, fence. Gives 'stale', 'more', 'again' or
-- 'done'; of a list 'bare' when nobody is on it any more: its timeline is to go before the job ends.
local job = held(ARGV[3], ARGV[4])
if not job then
  return 'stale'
end

-- The first PASS members leave a set, each with what `part` does about it; gives how many.
local function strip(key, part)
  local members = redis.call('ZRANGE', key, 0, PASS - 1)
  for _, member in ipairs(members) do
    part(member)
  end
  if #members > 0 then
    redis.call('ZREMRANGEBYRANK', key, 0, #members - 1)
  end
  return #members
end

redis.call('HSET', job.key, 'begun', '1')
if job.mode == 'drop' then
  local gone = strip(KEY.members .. job.owner, function(uid)
    redis.call('ZREM', KEY.listed .. uid, job.owner)
    redis.call('HINCRBY', KEY.user .. uid, 'left', 1)
  end)
  go_on(job, '', '', '', LEASE_MS)
  return gone < PASS and 'bare' or 'more'
end
local likers = strip(KEY.likes .. job.status, function(uid)
  redis.call('ZREM', KEY.liked .. uid, job.status)
end)
local comments = likers < PASS and strip(KEY.comments .. job.status, function(comment)
  redis.call('DEL', KEY.comment .. comment)
end) or PASS
if comments == PASS then
  go_on(job, job.phase, '', '', LEASE_MS)
  return 'more'
end
redis.call('DEL', KEY.replies .. job.status, KEY.reposts .. job.status)
return finish(job)
