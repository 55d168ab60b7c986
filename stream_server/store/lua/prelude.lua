-- Before every script. Above it stand lines that Python makes: KEY, the names of the keys that it uses (store/keys.py);
-- LIMIT, about how many entries the log keeps; CAP and PASS, how long a timeline is and how many people a pass takes;
-- GRACE_MS, LEASE_MS and FOLLOWED of store/scripts.py; SIGHT, the answers of sight.py. Between it and a verb stand the parts that the verb's first line names, in order.
-- A script declares one key, its request key: all that it touches carries the same hash tag, so it is on the same
-- shard. ARGV 1 and 2 are the request's fingerprint and how long its answer is kept (ms); the verb's own follow.
local REQUEST_KEY, FINGERPRINT, KEEP_REPLY_MS = KEYS[1], ARGV[1], ARGV[2]
local PUBLIC, AUDIENCE_NONE = 'public', '-'
local format, floor = string.format, math.floor

local function refuse(why)
  return redis.error_reply(why)
end

-- The answer of the same request made before, or nil. Looked at before anything else: the second asking must not be
-- refused because of what the first one did.
local function earlier_reply()
  local kept = redis.call('GET', REQUEST_KEY)
  if not kept then
    return nil
  end
  local fingerprint, answer = kept:match('^(%S+) (.*)$')
  if fingerprint ~= FINGERPRINT then
    return refuse('DUPLICATE Idempotency-Key')
  end
  return {1, answer}
end

-- Keeps the answer and gives it; what comes after it is for the first asking only.
local function keep_reply(value, ...)
  redis.call('SET', REQUEST_KEY, FINGERPRINT .. ' ' .. value, 'PX', KEEP_REPLY_MS)
  return {0, value, ...}
end

-- Numbers become text here only: Lua's own conversion writes ids as 3.7e+14.
local function to_text(number)
  return format('%d', number)
end

-- NOW
local function now_ms()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + floor(tonumber(time[2]) / 1000)
end

-- The pair after (ms, seq): never below it, whatever the clock says; 4,096 in a millisecond, then the next one.
local function next_time_and_seq(ms, seq)
  local now = now_ms()
  if now > ms then
    return now, 0
  elseif seq < 4095 then
    return ms, seq + 1
  end
  return ms + 1, 0
end

-- The next (ms, seq) and the next number on the log. Reads only: whoever uses them writes them back.
local function next_position()
  local last = redis.call('HMGET', KEY.meta, 'ms', 'seq', 'n')
  local ms, seq = next_time_and_seq(tonumber(last[1] or '0'), tonumber(last[2] or '0'))
  return ms, seq, tonumber(last[3] or '0') + 1
end

-- The id made at (ms, seq): 53 bits, counted from 2024-01-01.
local function make_id(ms, seq)
  return to_text((ms - 1704067200000) * 4096 + seq)
end

-- ISO 8601 in UTC with milliseconds; the days become a date by Howard Hinnant's civil_from_days.
local function to_iso8601(ms)
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
  return format('%04d-%02d-%02dT%02d:%02d:%02d.%03dZ', year, month, day, floor(rest / 3600),
    floor(rest / 60) % 60, rest % 60, ms - seconds * 1000)
end

-- The first write of every script that makes an event: where Redis is full or read-only, it fails here, and nothing
-- was changed. Gives the position, which is also the answer. Where Redis forbids to publish, the write stands all the
-- same, and is whole: it is on the log, where whoever does not hear of it reads it.
local function append_entry(kind, audience, body, ms, seq, n)
  local ms_text, seq_text, n_text = to_text(ms), to_text(seq), to_text(n)
  local id = ms_text .. '-' .. seq_text
  redis.call('XADD', KEY.log, 'MAXLEN', '~', LOG_MAX_ENTRIES, id, 'n', n_text, 'k', kind, 'a', audience, 'e', body)
  redis.call('HSET', KEY.meta, 'ms', ms_text, 'seq', seq_text, 'n', n_text)
  local position = id .. ' ' .. n_text
  redis.pcall('PUBLISH', 'events:' .. kind, position .. ' ' .. kind .. ' ' .. audience .. ' ' .. body)
  return position
end

-- The place for one more entry of the same step. (`append` writes it down.)
local function following_position(ms, seq, n)
  local later, place = next_time_and_seq(ms, seq)
  return later, place, n + 1
end

-- An id as JSON; '' is null.
local function json_id_or_null(id)
  return id == '' and 'null' or '"' .. id .. '"'
end
