-- parts: jobs home_sleep
-- Let those home timelines fall asleep whose users have not come for long. Asleep ones that still exist, because an
-- earlier version of this server wrote them, get another job that removes them. A user without a
-- recorded visit counts as here now, so nobody falls asleep too early. For a while after the first call nobody falls
-- asleep, because all servers must first learn that they must look (store/timelines/home_visits.py).
-- ARGV: 3 time without a visit (ms), 4 how long servers may take to learn it (ms), from 5 on users who have a home
-- timeline. Reply: how many fell asleep.
local now, fallen = now_ms(), 0
redis.call('HSETNX', KEY.meta, 'asleep', to_text(now))
local may_sleep = now - tonumber(redis.call('HGET', KEY.meta, 'asleep')) >= tonumber(ARGV[4])
for at = 5, #ARGV do
  local uid = ARGV[at]
  local since, visited = redis.call('ZSCORE', KEY.asleep, uid), redis.call('ZSCORE', KEY.visited, uid)
  if not since and not visited then
    redis.call('ZADD', KEY.visited, to_text(now), uid)
  elseif may_sleep and ((since and tonumber(since) > 0) or (not since and now - tonumber(visited) >= tonumber(ARGV[3]))) then
    if remove_home(uid, now) and not since then fallen = fallen + 1 end
  end
end
return fallen
