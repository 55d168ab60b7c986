-- This text stands before every script. The parts that the script's first line names follow in that order. A part needs
-- the parts before it. store/redis/scripts.py puts values in the place of these constants: KEY.<name>, the key names
-- (store/keys.py); LOG_MAX_ENTRIES, TIMELINE_MAX, FANOUT_BATCH_SIZE, STEP_TIMELINES, ADDS_PER_TRIM, FOLLOWING_MAX,
-- ASK_STRANGERS and PACKED_STATUSES, which are limits and settings; HOME_TIMELINE and LIST_TIMELINE, the beginnings of
-- keys of timelines; JOB_GRACE_MS, JOB_LEASE_MS and REFILL_AUTHORS_PER_PASS; MAC_INNER_PAD and MAC_OUTER_PAD, the key of
-- the signature; FOREIGN_USERS, the key of the own ids of users by foreign id; VISIBILITY_TABLE, the answers of
-- events/visibility.py.
-- KEYS: 1 the idempotency key of a write, or any core key of a read; 2 KEY.meta, 3 KEY.never (see scripts.py). All keys
-- of a script are on the same shard.
-- ARGV: 1 fingerprint of the request, 2 how long its reply is kept (ms). The header of each script lists the others.
-- Reply of a write: 0, a short value that is kept, and values for the first call only; a repeated call gets 1 and the value.
-- A refusal is an error `<WORD> <noun> [<parameter>]`; store/redis/refusals.py makes the API's errors of it.
local REQUEST_KEY, FINGERPRINT, KEEP_REPLY_MS = KEYS[1], ARGV[1], ARGV[2]
local PUBLIC, AUDIENCE_NONE = 'public', '-'
local format, floor = string.format, math.floor
local claims_reply = false -- parts/idempotent_claim.lua sets it
local shares_fan_out = false -- parts/ingested.lua sets it
local has_sleepers = false -- whether a home timeline may be asleep (parts/sleepers.lua); next_position sets it

-- The kept reply of the same request, or nil. A write looks for it first, because the repetition must not be refused on
-- account of what the first call changed.
local function earlier_reply()
  local kept = redis.call('GET', REQUEST_KEY)
  if not kept then return nil end
  local fingerprint, answer = kept:match('^(%S+) (.*)$')
  if fingerprint ~= FINGERPRINT then return redis.error_reply('DUPLICATE Idempotency-Key') end
  return {1, answer}
end

-- Refuses the request. A script that has not looked for an earlier reply does it now.
local function refuse(why)
  return claims_reply and earlier_reply() or redis.error_reply(why)
end

-- Returns the reply, and keeps its value unless it is kept already. A value that begins with `unchanged` is not kept: such a
-- write has changed nothing, so its repetition may look again. The values behind `value` are for the first call only. All
-- that grows with the request stands there: users must not fill Redis with kept replies.
local function keep_reply(value, ...)
  if not claims_reply and value:sub(1, 9) ~= 'unchanged' then
    redis.call('SET', REQUEST_KEY, FINGERPRINT .. ' ' .. value, 'PX', KEEP_REPLY_MS)
  end
  return {0, value, ...}
end

-- Only this function makes text of numbers. Lua's own conversion would write ids as 3.7e+14.
local function to_text(number)
  return format('%d', number)
end

-- Redis's clock in ms since 1970.
local function now_ms()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + floor(tonumber(time[2]) / 1000)
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

-- The next (ms, seq) and the next number of the log. Reads only; append_entry stores them.
local function next_position()
  local last = redis.call('HMGET', KEY.meta, 'ms', 'seq', 'n', 'asleep')
  has_sleepers = last[4] and true or false
  local ms, seq = next_time_and_seq(tonumber(last[1] or '0'), tonumber(last[2] or '0'))
  return ms, seq, tonumber(last[3] or '0') + 1
end

-- The position of one more entry in the same step; append_entry stores it. The step has one time, so the clock is not
-- read again.
local function following_position(ms, seq, n)
  ms, seq = pair_after(ms, seq)
  return ms, seq, n + 1
end

-- The id made at (ms, seq): 53 bits, counted from 2024-01-01.
local function make_id(ms, seq)
  return to_text((ms - 1704067200000) * 4096 + seq)
end

-- ISO 8601 in UTC with milliseconds. The date is computed by Howard Hinnant's civil_from_days.
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

-- The published message, with its HMAC-SHA1 as the last member of the JSON (events/bus_signature.py).
local function signed(message)
  if MAC_INNER_PAD == '' then return message end
  local inner, words = redis.sha1hex(MAC_INNER_PAD .. message), {}
  for at = 1, 5 do
    words[at] = tonumber(inner:sub(8 * at - 7, 8 * at), 16)
  end
  local outer = MAC_OUTER_PAD .. struct.pack('>I4I4I4I4I4', unpack(words))
  return message:sub(1, -2) .. ',"mac":"' .. redis.sha1hex(outer) .. '"}'
end

-- The position of an entry as text, which is also the kept reply of its write.
local function position_text(ms, seq, n)
  return to_text(ms) .. '-' .. to_text(seq) .. ' ' .. to_text(n)
end

-- The first write of every script that makes an event. If Redis is full or read-only, it fails here and nothing has
-- changed. Returns the position, which is also the kept reply, and the entry's time as text. If Redis forbids PUBLISH,
-- the write is complete all the same: feeds read the entry from the log.
local function append_entry(kind, audience, body, ms, seq, n)
  local ms_text, seq_text, n_text = to_text(ms), to_text(seq), to_text(n)
  local id, position = ms_text .. '-' .. seq_text, position_text(ms, seq, n)
  redis.call('XADD', KEY.log, 'MAXLEN', '~', LOG_MAX_ENTRIES, id, 'n', n_text, 'k', kind, 'a', audience, 'e', body)
  redis.call('HSET', KEY.meta, 'ms', ms_text, 'seq', seq_text, 'n', n_text)
  redis.pcall('PUBLISH', 'events:' .. kind, signed(position .. ' ' .. kind .. ' ' .. audience .. ' ' .. body))
  return position, ms_text
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
