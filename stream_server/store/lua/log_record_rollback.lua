-- Record on the log that Redis lost the end of the log (power cut, failover), and assign no id below a lost one again.
-- A lost range is named by its first position, and its score is the id of the entry that records it. If the clock was
-- set back, one range may lie inside another, and clients of both resume at the lower position. So a range that begins
-- after the position in ARGV 3 to 5 does not record this loss.
-- ARGV: 3 to 5 ms, seq and n of the newest entry that the caller knows and that still exists, 6 to 8 those of the
-- newest lost entry.
-- Reply: empty if the entry of ARGV 6 to 8 exists after all. Otherwise the position after which clients resume, and the
-- position of the new entry (missing if the loss was recorded before).
local MAX_ROLLBACKS = 64
-- An id that lies further in the future did not come from this store, so it must not advance the clock of ids.
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

-- The highest id that the log ever had, even if that entry is gone.
local function highest_id()
  local info = redis.call('EXISTS', KEY.log) == 1 and redis.call('XINFO', 'STREAM', KEY.log) or {}
  for at = 1, #info, 2 do
    if info[at] == 'last-generated-id' then return parse_id(info[at + 1]) end
  end
  return 0, 0
end

local place = ARGV[6] .. '-' .. ARGV[7]
local found = redis.call('XRANGE', KEY.log, place, place)[1]
if found and found[2][2] == ARGV[8] then return {} end
for _, range in ipairs(redis.call('ZRANGEBYSCORE', KEY.rollbacks, '(' .. lost_id, '+inf')) do
  local ms, seq = parse_id(range)
  if not is_before(from_ms, from_seq, ms, seq) then return {range:match('^%S+')} end
end
local kept = redis.call('HMGET', KEY.meta, 'ms', 'seq', 'n')
local ms, seq = tonumber(kept[1] or '0'), tonumber(kept[2] or '0')
local high_ms, high_seq = highest_id()
if is_before(ms, seq, high_ms, high_seq) then ms, seq = high_ms, high_seq end
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
local body = '{"wire":{"from":"' .. range:gsub(' ', '","to":"') .. '"}}'
local recorded = append_entry('rollback', AUDIENCE_NONE, body, ms, seq, count + 1)
redis.call('ZADD', KEY.rollbacks, make_id(ms, seq), range)
redis.call('ZREMRANGEBYRANK', KEY.rollbacks, 0, -MAX_ROLLBACKS - 1)
return {from, recorded}
