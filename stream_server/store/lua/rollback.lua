-- The loss of the end of the log.
local MAX_ROLLBACKS = 64
-- An id that lies further in the future did not come from this store, so it must not advance the clock of ids.
local MAX_AHEAD_MS = 86400000

local function is_pair_before(ms, seq, other_ms, other_seq)
  return ms < other_ms or (ms == other_ms and seq < other_seq)
end

local function parse_pair(id)
  local ms, seq = id:match('^(%d+)-(%d+)')
  return tonumber(ms), tonumber(seq)
end

-- The highest pair that the log ever had, even if that entry is gone.
local function highest_pair()
  local info = redis.call('EXISTS', KEY.log) == 1 and redis.call('XINFO', 'STREAM', KEY.log) or {}
  for at = 1, #info, 2 do
    if info[at] == 'last-generated-id' then return parse_pair(info[at + 1]) end
  end
  return 0, 0
end

-- Records on the log that Redis lost the end of the log (power cut, failover). From then on no id below a lost one is made.
-- Arguments: ms, seq and n of the newest entry that the caller knows and that still exists; ms, seq and n of the newest lost
-- entry. Together they are the lost range.
-- KEY.rollbacks has the recorded ranges. The score of a range is the id of the entry that records it. If the clock was set
-- back, one range may lie inside another, and the clients of both must resume at the lower position. So a recorded range that
-- begins after the range of the caller does not record the caller's loss.
-- Reply: empty if the lost entry exists after all. Otherwise the position after which clients resume, and the position of
-- the new entry (missing if the loss was recorded before).
function run.log_record_rollback(from_ms, from_seq, from_n, lost_ms, lost_seq, lost_n) --> resume_after, position
  local from, place = from_ms .. '-' .. from_seq .. '.' .. from_n, lost_ms .. '-' .. lost_seq
  local range = from .. ' ' .. place .. '.' .. lost_n
  from_ms, from_seq, lost_ms, lost_seq = tonumber(from_ms), tonumber(from_seq), tonumber(lost_ms), tonumber(lost_seq)
  local found = redis.call('XRANGE', KEY.log, place, place)[1]
  if found and found[2][2] == lost_n then return {} end
  local recorded = redis.call('ZRANGEBYSCORE', KEY.rollbacks, '(' .. make_id(lost_ms, lost_seq), '+inf')
  for _, known in ipairs(recorded) do
    local known_ms, known_seq = parse_pair(known)
    if not is_pair_before(from_ms, from_seq, known_ms, known_seq) then return {known:match('^%S+')} end
  end
  local kept = redis.call('HMGET', KEY.meta, 'ms', 'seq', 'n', 'bytes')
  log_bytes = tonumber(kept[4] or USUAL_ENTRY_BYTES * tonumber(kept[3] or '0'))
  local ms, seq = tonumber(kept[1] or '0'), tonumber(kept[2] or '0')
  local high_ms, high_seq = highest_pair()
  if is_pair_before(ms, seq, high_ms, high_seq) then ms, seq = high_ms, high_seq end
  if is_pair_before(ms, seq, lost_ms, lost_seq) and lost_ms < now_ms() + MAX_AHEAD_MS then
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
  local body = '{"wire":{"from":"' .. range:gsub(' ', '","to":"') .. '"}}'
  local position = append_entry('rollback', AUDIENCE_NONE, body, ms, seq, count + 1)
  redis.call('ZADD', KEY.rollbacks, make_id(ms, seq), range)
  redis.call('ZREMRANGEBYRANK', KEY.rollbacks, 0, -MAX_ROLLBACKS - 1)
  return {from, position}
end
