-- The id and the number n of the newest entry, as text; '0-0' and '0' if the log is empty.
local function log_head()
  local newest = redis.call('XREVRANGE', KEY.log, '+', '-', 'COUNT', 1)[1]
  return newest and newest[1] or '0-0', newest and newest[2][2] or '0'
end
