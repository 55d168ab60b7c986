-- Remove some entries from the front of the log. Redis removes only whole stream nodes, so old entries that share a
-- node with a kept entry stay too. The newest entry always stays, because cursors at the head name it.
-- ARGV: 3 maximum age in ms (0 for none), 4 maximum number of entries (0 for none), 5 about how many to remove at most.
-- Reply: number of removed entries, number of entries left, age of the first entry in ms (-1 if the log is empty).
local most = ARGV[5]
local newest = redis.call('XREVRANGE', KEY.log, '+', '-', 'COUNT', 1)[1]
if not newest then return {0, 0, -1} end
local now = now_ms()
local taken = 0
if ARGV[3] ~= '0' then
  local oldest = now - tonumber(ARGV[3])
  local place = newest[1]
  if oldest < tonumber(place:match('^%d+')) then
    place = to_text(oldest > 0 and oldest or 0) .. '-0'
  end
  taken = redis.call('XTRIM', KEY.log, 'MINID', '~', place, 'LIMIT', most)
end
if ARGV[4] ~= '0' then
  taken = taken + redis.call('XTRIM', KEY.log, 'MAXLEN', '~', ARGV[4], 'LIMIT', most)
end
local first = redis.call('XRANGE', KEY.log, '-', '+', 'COUNT', 1)[1]
return {taken, redis.call('XLEN', KEY.log), now - tonumber(first[1]:match('^%d+'))}
