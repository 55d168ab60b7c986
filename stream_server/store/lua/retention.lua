-- Retention of the log: how large it is, and the removal of its oldest entries. Sizes are those of append_entry (log.lua).

-- The number of the newest entry, that of the last one before the log, and the size of all entries up to the newest. The
-- numbers have no gaps, so the first two differ by the length.
local function log_extent()
  local kept = redis.call('HMGET', KEY.meta, 'n', 'bytes')
  local newest = tonumber(kept[1] or '0')
  return newest, newest - redis.call('XLEN', KEY.log), tonumber(kept[2] or USUAL_ENTRY_BYTES * newest)
end

-- The number and the size of a mark, or nil. `found` is a reply with one mark, or none.
local function read_mark(found)
  return tonumber(found[2]), tonumber(found[1])
end

-- The size of all entries up to the last one before the log. Between two marks all entries are taken as equally large. No
-- mark stands before the first entry, where the size is 0.
local function floor_size(floor, newest, total)
  local number, size = read_mark(redis.call('ZREVRANGEBYSCORE', KEY.sizes, to_text(floor), '-inf', 'WITHSCORES', 'LIMIT', 0, 1))
  number, size = number or 0, size or 0
  local above, above_size =
    read_mark(redis.call('ZRANGEBYSCORE', KEY.sizes, '(' .. to_text(number), to_text(newest), 'WITHSCORES', 'LIMIT', 0, 1))
  above, above_size = above or newest, above_size or total
  if above == number then return size end
  return size + (floor - number) * (above_size - size) / (above - number)
end

-- The number of the entry up to which all entries have the size `wanted`.
local function number_at(wanted, newest, total)
  local low, high = 0, redis.call('ZCARD', KEY.sizes) -- the marks before `low` are not above, those from `high` on are
  local below, below_size, above, above_size = 0, 0, newest, total
  while low < high do
    local middle = math.floor((low + high) / 2)
    local number, size = read_mark(redis.call('ZRANGE', KEY.sizes, to_text(middle), to_text(middle), 'WITHSCORES'))
    if size > wanted then
      above, above_size, high = number, size, middle
    else
      below, below_size, low = number, size, middle + 1
    end
  end
  if above_size <= below_size then return below end
  return math.ceil(below + (wanted - below_size) * (above - below) / (above_size - below_size))
end

-- Removes some entries from the front of the log. Redis removes only whole stream nodes, so old entries that share a
-- node with a kept entry stay too. The newest entry always stays, because cursors at the head name it.
-- max_age: maximum age in ms, max_size: maximum size of all entries ('0' for none); most: about how many to remove.
-- Reply: number of removed entries, number of entries left, age of the first entry in ms (-1 if the log is empty), size
-- of the entries left, times of the first and the last entry.
function run.log_trim(max_age, max_size, most) --> removed, left, age_ms, bytes, first_ms, last_ms
  local last = redis.call('XREVRANGE', KEY.log, '+', '-', 'COUNT', 1)[1]
  if not last then return {0, 0, -1, 0, '0', '0'} end
  local now, taken = now_ms(), 0
  if max_age ~= '0' then
    local oldest, place = now - tonumber(max_age), last[1]
    if oldest < tonumber(place:match('^%d+')) then
      place = to_text(oldest > 0 and oldest or 0) .. '-0'
    end
    taken = redis.call('XTRIM', KEY.log, 'MINID', '~', place, 'LIMIT', most)
  end
  local newest, floor, total = log_extent()
  local size = total - floor_size(floor, newest, total)
  if max_size ~= '0' and size > tonumber(max_size) then
    local kept = newest - number_at(total - max_size, newest, total)
    local removed = redis.call('XTRIM', KEY.log, 'MAXLEN', '~', to_text(math.max(kept, 1)), 'LIMIT', most)
    taken, floor = taken + removed, floor + removed
    size = total - floor_size(floor, newest, total)
  end
  local under = redis.call('ZREVRANGEBYSCORE', KEY.sizes, to_text(floor), '-inf', 'LIMIT', 0, 1, 'WITHSCORES')[2]
  if under then redis.call('ZREMRANGEBYSCORE', KEY.sizes, '-inf', '(' .. under) end
  local first, first_seq = redis.call('XRANGE', KEY.log, '-', '+', 'COUNT', 1)[1][1]:match('^(%d+)-(%d+)$')
  -- No entry is left that shows what these edits replaced.
  redis.call('ZREMRANGEBYSCORE', KEY.edited, '-inf', '(' .. make_id(tonumber(first), tonumber(first_seq)))
  redis.call('ZREMRANGEBYSCORE', KEY.gone, '-inf', '(' .. first) -- no entry shows any more who was deleted before the first one
  if floor > 0 then -- these subscriptions have lost entries, and are late for a warning
    redis.call('ZREMRANGEBYSCORE', KEY.unacked, '-inf', '(' .. first)
  end
  return {taken, redis.call('XLEN', KEY.log), now - tonumber(first), math.max(0, math.floor(size)), first, last[1]:match('^%d+')}
end
