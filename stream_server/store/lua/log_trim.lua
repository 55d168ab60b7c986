-- Takes one slice off the front of the log: what is older than ARGV 3 ms (0 is no bound), and what is more than ARGV 4
-- entries (0 is no bound), about ARGV 5 entries at most of each. Redis drops whole nodes only, so what shares one with an
-- entry that stays, stays too. The newest entry always stays: cursors at the head name it.
-- Gives what was taken, the entries that are left, and for how many ms the first of them has been there; -1 for none.
local most = ARGV[5]
local newest = redis.call('XREVRANGE', KEY.log, '+', '-', 'COUNT', 1)[1]
if not newest then
  return {0, 0, -1}
end
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
