-- The log lost its end (a power cut, a failover): says so on it, and lets no id come back below a lost one. ARGV 3 to 5
-- are ms, seq and n of the newest entry that the caller knows and that is still there, 6 to 8 those of the newest lost.
-- A range is known by its first place, scored by the id of the entry that told of it: no other entry lies between but
-- those that were written before anybody noticed. With the clock set back one range may lie in another, and whoever was
-- in both goes on from the lower place: a range that begins above ARGV 3 to 5 does not tell this loss.
-- Gives nothing if the entry is there after all; else the place after which the log goes on for whoever had it, and where
-- that was told just now, nothing if it was known already.
local MAX_ROLLBACKS = 64
-- What claims to be of a later time than this from now was not made here: no clock is set by it.
local MAX_AHEAD_MS = 86400000
local from_ms, from_seq = tonumber(ARGV[3]), tonumber(ARGV[4])
local lost_ms, lost_seq = tonumber(ARGV[6]), tonumber(ARGV[7])
local lost_id = make_id(lost_ms, lost_seq)

local function is_before(ms, seq, other_ms, other_seq)
  return ms < other_ms or (ms == other_ms and seq < other_seq)
end

local function parse_id(id)
  local ms, seq = id:match('^(%d+)-(%d+)')
  return tonumber(ms), tonumber(seq)
end

-- The highest id that the log ever had, also where the entry is gone.
local function highest_id()
  local told = redis.call('EXISTS', KEY.log) == 1 and redis.call('XINFO', 'STREAM', KEY.log) or {}
  for at = 1, #told, 2 do
    if told[at] == 'last-generated-id' then
      return parse_id(told[at + 1])
    end
  end
  return 0, 0
end

local place = ARGV[6] .. '-' .. ARGV[7]
local found = redis.call('XRANGE', KEY.log, place, place)[1]
if found and found[2][2] == ARGV[8] then
  return {}
end
for _, range in ipairs(redis.call('ZRANGEBYSCORE', KEY.rollbacks, '(' .. lost_id, '+inf')) do
  local ms, seq = parse_id(range)
  if not is_before(from_ms, from_seq, ms, seq) then
    return {range:match('^%S+')}
  end
end
local kept = redis.call('HMGET', KEY.meta, 'ms', 'seq', 'n')
local ms, seq = tonumber(kept[1] or '0'), tonumber(kept[2] or '0')
local high_ms, high_seq = highest_id()
if is_before(ms, seq, high_ms, high_seq) then
  ms, seq = high_ms, high_seq
end
if is_before(ms, seq, lost_ms, lost_seq) and lost_ms < now_ms() + MAX_AHEAD_MS then
  ms, seq = lost_ms, lost_seq
end
ms, seq = next_time_and_seq(ms, seq)
local count = tonumber(kept[3] or '0')
for _, row in ipairs(redis.call('XREVRANGE', KEY.log, '+', '-', 'COUNT', 8)) do
  if row[2][1] == 'n' then
    count = tonumber(row[2][2])
    break
  end
end
local from = ARGV[3] .. '-' .. ARGV[4] .. '.' .. ARGV[5]
local range = from .. ' ' .. place .. '.' .. ARGV[8]
local told = append_entry('rollback', AUDIENCE_NONE, '{"wire":{"from":"' .. range:gsub(' ', '","to":"') .. '"}}', ms, seq, count + 1)
redis.call('ZADD', KEY.rollbacks, make_id(ms, seq), range)
redis.call('ZREMRANGEBYRANK', KEY.rollbacks, 0, -MAX_ROLLBACKS - 1)
return {from, told}
