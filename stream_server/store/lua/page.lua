-- A piece of a sorted set by (score, member), read only: key, the user it is of, direction ('before' is older), the
-- score to start from, and how many. Members of the same score as the start come in addition, so that the caller can
-- pass over those on the wrong side of it: many follows happen in one millisecond.
local key, uid, direction, from, count = ARGV[3], ARGV[4], ARGV[5], ARGV[6], tonumber(ARGV[7])
if redis.call('EXISTS', KEY.user .. uid) == 0 then
  return refuse('NOT_FOUND user')
end
local ties = redis.call('ZCOUNT', key, from, from)
local most = text(count + ties)
if direction == 'before' then
  return redis.call('ZRANGE', key, from, '-inf', 'BYSCORE', 'REV', 'LIMIT', 0, most, 'WITHSCORES')
end
return redis.call('ZRANGE', key, from, '+inf', 'BYSCORE', 'LIMIT', 0, most, 'WITHSCORES')
