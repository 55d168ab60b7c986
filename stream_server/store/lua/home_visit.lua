-- parts: jobs home_sleep
-- A user comes to read the home timeline. Records the visit if the last record is old, and wakes the timeline if it is
-- asleep. ARGV: 3 user, 4 age of a record (ms) from which it is written again.
-- Reply: nothing if the timeline is complete; else the fence of the job that makes it, '' if another is at work.
local uid, now = ARGV[3], now_ms()
local since, visited = redis.call('ZSCORE', KEY.asleep, uid), redis.call('ZSCORE', KEY.visited, uid)
local reply = {}
if since then reply[1] = wake_home(uid, tonumber(since), now) end
if not visited or now - tonumber(visited) >= tonumber(ARGV[4]) then
  redis.pcall('ZADD', KEY.visited, to_text(now), uid) -- a full Redis shows timelines nevertheless
end
return reply
