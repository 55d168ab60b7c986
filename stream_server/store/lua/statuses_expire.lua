-- parts: statuses notifications jobs job_passes dependents status_removal
-- Remove statuses because of their age. This makes no entry on the log. A status stays if it has changed since it was
-- read for the archive.
-- ARGV: 3 id below which statuses leave, 4 id of the log's first entry, from 5 on for each status: id, likes, comments
-- and id of the newest comment, as they were read. Its reposts may have left since.
-- Reply: a word for each status: 'left', 'changed' or 'gone' (it did not exist). Fewer words than statuses if that was
-- enough for one step.
local MAX_WORK, STATUS_WORK, MAX_DEPENDENT_WORK = 250, 25, 150
local below, floor_id = ARGV[3], tonumber(ARGV[4])
local floor_ms = floor(floor_id / 4096) + 1704067200000
local words, work, left, now = {}, 0, 0, now_ms()

-- Whether an entry of the log may show the status: it was posted, liked, commented or reposted since the first entry.
local function is_on_log(row, newest_comment, touched)
  if tonumber(row.id) >= floor_id or tonumber(touched or '0') >= floor_ms then return true end
  if newest_comment ~= '' and tonumber(newest_comment) >= floor_id then return true end
  local like = row.likes ~= '0' and redis.call('ZRANGE', KEY.likes .. row.id, -1, -1, 'WITHSCORES')[2]
  if like and tonumber(like) >= floor_ms then return true end
  local repost = row.reposts ~= '0' and redis.call('ZRANGE', KEY.reposts .. row.id, -1, -1)[1]
  return repost and tonumber(repost) >= floor_id
end

-- The likes and comments of a status go at once if they are few and no job is at work on the status.
local function remove_dependents(row, cost)
  local job = 'status-' .. row.id
  local is_idle = redis.call('EXISTS', KEY.job .. job) == 0 and not redis.call('ZSCORE', KEY.due, job)
  if is_idle and cost <= MAX_DEPENDENT_WORK and delete_status_dependents(row.id, row.uid) then return end
  enqueue_job(job, 'clean', now, 'uid', row.uid, 'status', row.id)
  redis.call('HSET', KEY.job .. job, 'phase', 'rest')
end

local function expire(row, newest_comment, cost)
  local kept = redis.call('HMGET', KEY.status .. row.id, 'in_reply_to', 'in_reply_to_uid', 'mentioned', 'tags',
    'conversation', 'touched')
  if is_on_log(row, newest_comment, kept[6]) then redis.call('ZADD', KEY.expired, to_text(now), row.id) end
  unlink_status(row, unpack(kept, 1, 5))
  remove_dependents(row, cost)
end

-- This is the first write, so that a full Redis refuses it and nothing has changed.
local known = tonumber(redis.call('HGET', KEY.expiry, 'below') or '0')
redis.call('HSET', KEY.expiry, 'below', to_text(math.max(known, tonumber(below))))
for at = 5, #ARGV, 4 do
  if work >= MAX_WORK then break end
  local id, newest_comment = ARGV[at], ARGV[at + 3]
  local row, word = find_status(id), 'gone'
  if row then
    local is_same = row.likes == ARGV[at + 1] and row.comments == ARGV[at + 2]
      and (row.comments == '0' and '' or redis.call('ZRANGE', KEY.comments .. id, -1, -1)[1]) == newest_comment
    word = is_same and 'left' or 'changed'
    local cost = 2 * tonumber(row.likes) + 6 * tonumber(row.comments)
    if is_same then
      expire(row, newest_comment, cost)
      left = left + 1
    end
    work = work + STATUS_WORK + math.min(cost, MAX_DEPENDENT_WORK)
  end
  words[#words + 1] = word
end
redis.call('HINCRBY', KEY.expiry, 'left', to_text(left))
return words
