-- The log's ends and a place on it, of one moment: read only. ARGV 3 is the id of the place. Gives the head and the floor,
-- as `<id> <n>` and what they weigh, the row at the place if there is one, the newest before it, what rollbacks told of
-- later ids (ARGV 4), and what Redis says of itself. Not by MULTI: a Redis that is full refuses to queue even reading.
-- Bodies stay where they are but for the place's own: a beat asks for this, and they may be of megabytes.
local place = ARGV[3]
local MAX_INVALID_ROWS = 8

-- As events.make_entry has it.
local function is_log_entry(fields)
  return #fields >= 8 and fields[2]:find('^%d+$') and fields[4]:find('^[%a_]+$') and not fields[6]:find('[\128-\255]')
    and not fields[8]:find('[\r\n]')
end

-- The first entry of ours: nobody else should write there, so one row is looked at before some more are.
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

local under = place == '0-0' and place or '(' .. place -- Redis refuses to go below 0-0
return {
  first_entry('XREVRANGE', '+', '-'), first_entry('XRANGE', '-', '+'), redis.call('XRANGE', KEY.log, place, place),
  first_entry('XREVRANGE', under, '-'), redis.call('ZRANGEBYSCORE', KEY.rollbacks, '(' .. ARGV[4], '+inf'),
  redis.call('INFO', 'server'),
}
