-- Read both ends of the log and the entry with one id, in one step. Read only. A MULTI cannot do this, because a full
-- Redis refuses to queue even read commands. The reply has no bodies except that of the entry itself, because the
-- canary calls this often, and bodies may hold megabytes.
-- ARGV: 3 the id, 4 the same id as a status id, to find rollbacks that were recorded after it.
-- Reply: head and floor (last and first entry), each as `<id> <n>` and its size in bytes (empty if the log is empty);
-- the row with the id, if it exists; the newest entry before it; the recorded rollbacks; the section `server` of INFO.
local place = ARGV[3]
local MAX_INVALID_ROWS = 8

-- As events.make_entry has it.
local function is_log_entry(fields)
  return #fields >= 8 and fields[2]:find('^%d+$') and fields[4]:find('^[%a_]+$') and not fields[6]:find('[\128-\255]')
    and not fields[8]:find('[\r\n]')
end

-- The first valid entry. Other clients should not write to the log, so one row is read before MAX_INVALID_ROWS are.
local function first_entry(command, from, to)
  for _, count in ipairs({1, MAX_INVALID_ROWS}) do
    for _, row in ipairs(redis.call(command, KEY.log, from, to, 'COUNT', count)) do
      if is_log_entry(row[2]) then
        local weight = 0
        for _, field in ipairs(row[2]) do
          weight = weight + #field
        end
        return {row[1] .. ' ' .. row[2][2], weight}
      end
    end
  end
  return {}
end

local upper_bound = place == '0-0' and place or '(' .. place -- Redis refuses to go below 0-0
return {
  first_entry('XREVRANGE', '+', '-'), first_entry('XRANGE', '-', '+'), redis.call('XRANGE', KEY.log, place, place),
  first_entry('XREVRANGE', upper_bound, '-'), redis.call('ZRANGEBYSCORE', KEY.rollbacks, '(' .. ARGV[4], '+inf'),
  redis.call('INFO', 'server'),
}
