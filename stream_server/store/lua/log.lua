-- The log: numbers, times, ids, and the entries.
local PUBLIC = 'public'
local AUDIENCE_NONE = '-'
local EPOCH_MS = 1704067200000

-- Only this function makes text of numbers. Lua's own conversion would write ids as 3.7e+14.
local function to_text(number)
  return string.format('%d', number)
end

-- Redis's clock in ms since 1970.
local function now_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- The next pair at the same time, if there is one. A millisecond has 4,096 pairs.
local function pair_after(ms, seq)
  if seq < 4095 then return ms, seq + 1 end
  return ms + 1, 0
end

-- The pair after (ms, seq) at the present time, never lower, even if the clock was set back.
local function next_time_and_seq(ms, seq)
  local now = now_ms()
  if now > ms then return now, 0 end
  return pair_after(ms, seq)
end

-- The size of each entry that version 1.0.0 appended, which did not count. Without it, an upgraded log could fill Redis.
local USUAL_ENTRY_BYTES = 512

-- The next (ms, seq), the next number of the log, and whether a home timeline may be asleep (timeline.lua). Reads only;
-- append_entry stores the three numbers. It also needs `log_bytes`, which this sets.
local function next_position()
  local last = redis.call('HMGET', KEY.meta, 'ms', 'seq', 'n', 'asleep', 'bytes')
  log_bytes = tonumber(last[5] or USUAL_ENTRY_BYTES * tonumber(last[3] or '0'))
  local ms, seq = next_time_and_seq(tonumber(last[1] or '0'), tonumber(last[2] or '0'))
  return ms, seq, tonumber(last[3] or '0') + 1, last[4]
end

-- The position of one more entry in the same step, after that of an entry which the step has appended: a number without
-- an entry would look like a loss. append_entry stores it. The step has one time, so the clock is not read again.
local function following_position(ms, seq, n)
  ms, seq = pair_after(ms, seq)
  return ms, seq, n + 1
end

-- Stores the pair of an id that has no entry on the log. With it goes the form of the stored data, which a server reads
-- when it starts: the first write of all makes a user.
local function store_pair(ms, seq)
  redis.call('HSET', KEY.meta, 'ms', to_text(ms), 'seq', to_text(seq), 'form', STORED_FORM)
end

-- The id made at (ms, seq): 53 bits, counted from 2024-01-01.
local function make_id(ms, seq)
  return to_text((ms - EPOCH_MS) * 4096 + seq)
end

-- ISO 8601 in UTC with milliseconds. The date is computed by Howard Hinnant's civil_from_days.
local function to_iso8601(ms)
  local floor = math.floor
  local seconds = floor(ms / 1000)
  local days = floor(seconds / 86400)
  local rest = seconds - days * 86400
  local shifted = days + 719468
  local era = floor(shifted / 146097)
  local doe = shifted - era * 146097
  local yoe = floor((doe - floor(doe / 1460) + floor(doe / 36524) - floor(doe / 146096)) / 365)
  local doy = doe - (365 * yoe + floor(yoe / 4) - floor(yoe / 100))
  local mp = floor((5 * doy + 2) / 153)
  local day = doy - floor((153 * mp + 2) / 5) + 1
  local month = mp < 10 and mp + 3 or mp - 9
  local year = yoe + era * 400 + (month <= 2 and 1 or 0)
  return string.format('%04d-%02d-%02dT%02d:%02d:%02d.%03dZ', year, month, day, floor(rest / 3600),
    floor(rest / 60) % 60, rest % 60, ms - seconds * 1000)
end

-- Publishes an entry, with its signature as the last member of the JSON (events/bus_signature.py). If Redis forbids
-- PUBLISH, the write is complete all the same: feeds read the entry from the log.
local function publish(position, kind, audience, body)
  local head = position .. ' ' .. kind .. ' ' .. audience .. ' '
  if MAC_INNER_PAD ~= '' then
    local inner = redis.sha1hex(MAC_INNER_PAD .. head .. body)
    body = body:sub(1, -2) .. ',"mac":"' .. redis.sha1hex(MAC_OUTER_PAD .. inner) .. '"}'
  end
  redis.pcall('PUBLISH', 'events:' .. kind, head .. body)
end

-- The size of an entry is the bytes of its position, kind, audience and body. `bytes` in KEY.meta is the size of all
-- entries since the first, also of those that were removed. The functions of a script share it as `log_bytes`. KEY.sizes
-- marks this total where it passes a multiple of MARK_SIZE: the member is the total, and the score is the entry's number
-- (retention.lua).
local MARK_SIZE = 65536

-- The first write of every step that makes an event. If Redis is full or read-only, it fails here and nothing has
-- changed. Returns the position, which is also the kept reply, and the entry's time as text.
local function append_entry(kind, audience, body, ms, seq, n)
  local ms_text, seq_text, n_text = to_text(ms), to_text(seq), to_text(n)
  local id = ms_text .. '-' .. seq_text
  local position = id .. ' ' .. n_text
  redis.call('XADD', KEY.log, 'MAXLEN', '~', LOG_MAX_ENTRIES, id, 'n', n_text, 'k', kind, 'a', audience, 'e', body)
  local size = #position + #kind + #audience + #body
  appended = appended + size
  log_bytes = log_bytes + size
  local bytes_text = to_text(log_bytes)
  redis.call('HSET', KEY.meta, 'ms', ms_text, 'seq', seq_text, 'n', n_text, 'bytes', bytes_text)
  if log_bytes % MARK_SIZE < size then redis.call('ZADD', KEY.sizes, n_text, bytes_text) end
  if n == 1 then store_pair(ms, seq) end
  publish(position, kind, audience, body)
  return position, ms_text
end

-- As append_entry, for a step that has not looked for an earlier reply: it keeps the position as the reply of the request
-- before it writes anything else. If a reply is kept already, it ends the script, which answers with that one. If the log
-- refuses the entry, nothing is written.
local function claim_entry(kind, audience, body, ms, seq, n)
  local reply = string.format('%s %d-%d %d', FINGERPRINT, ms, seq, n)
  if not redis.call('SET', REQUEST_KEY, reply, 'PX', KEEP_REPLY_MS, 'NX') then refuse('REPEATED') end
  local done, position, posted = pcall(append_entry, kind, audience, body, ms, seq, n)
  if done then return position, posted end
  redis.call('DEL', REQUEST_KEY)
  error(position, 0)
end

-- The id and the number n of the newest entry, as text; '0-0' and '0' if the log is empty.
local function log_head()
  local newest = redis.call('XREVRANGE', KEY.log, '+', '-', 'COUNT', 1)[1]
  return newest and newest[1] or '0-0', newest and newest[2][2] or '0'
end

-- Adds a member to a sorted set with its time `when`, or removes it if there is none.
local function set_member(key, member, when)
  if when then
    redis.call('ZADD', key, when, member)
  else
    redis.call('ZREM', key, member)
  end
end

-- An id as JSON; '' becomes null.
local function json_id_or_null(id)
  return id == '' and 'null' or '"' .. id .. '"'
end

-- Tells the server that holds a stream to close it, or to go on with another token. `body` is that of the log entry.
-- Reply: position.
function write.stream_command(body)
  return keep_reply((append_entry('stream', AUDIENCE_NONE, body, next_position())))
end

-- Reads both ends of the log and the entry with the id `place`, in one step. Read only. A MULTI cannot do this, because
-- a full Redis refuses to queue even read commands. The reply has no bodies except that of the entry itself, because the
-- canary calls this often, and bodies may hold megabytes. `since` is the same id as a status id, to find rollbacks that
-- were recorded after it.
-- Reply: head and floor (last and first entry), each as `<id> <n>` and its size in bytes (empty if the log is empty);
-- the row with the id, if it exists; the newest entry before it; the recorded rollbacks; the section `server` of INFO;
-- 1 if the id lies before the floor, and entries were removed there.
function run.log_look_up(place, since) --> head, floor, found, before, rollbacks, info, has_lost_front
  -- As events.make_entry has it.
  local function is_log_entry(fields)
    return #fields >= 8 and fields[2]:find('^%d+$') and fields[4]:find('^[%a_]+$') and not fields[6]:find('[\128-\255]')
      and not fields[8]:find('[\r\n]')
  end

  -- The first valid entry. Other clients should not write to the log, so one row is read before eight are.
  local function first_entry(command, from, to)
    for _, count in ipairs({1, 8}) do
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

  -- Whether entries were removed before the floor. Their number tells, but XINFO has the bodies of both ends, too.
  local function has_lost_entries()
    if redis.call('EXISTS', KEY.log) == 0 then return 0 end
    local info, counts = redis.call('XINFO', 'STREAM', KEY.log), {}
    for at = 1, #info, 2 do counts[info[at]] = info[at + 1] end
    return counts['entries-added'] == counts.length and 0 or 1
  end

  local upper_bound = place == '0-0' and place or '(' .. place -- Redis refuses to go below 0-0
  -- If nothing is before the place, XREVRANGE would walk through the whole log: 80 ms of a long log. XRANGE ends at the
  -- first entry, in 22 µs.
  local has_before = redis.call('XRANGE', KEY.log, '-', upper_bound, 'COUNT', 1)[1]
  local found, floor = redis.call('XRANGE', KEY.log, place, place), first_entry('XRANGE', '-', '+')
  local is_below = not has_before and not found[1]
  return {
    first_entry('XREVRANGE', '+', '-'), floor, found,
    has_before and first_entry('XREVRANGE', upper_bound, '-') or {}, redis.call('ZRANGEBYSCORE', KEY.rollbacks, '(' .. since, '+inf'),
    redis.call('INFO', 'server'), is_below and has_lost_entries() or 0,
  }
end
