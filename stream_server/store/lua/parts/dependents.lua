-- Removes the first FANOUT_BATCH_SIZE members of a sorted set and calls `part` for each. Returns how many.
local function remove_members(key, part)
  local members = redis.call('ZRANGE', key, 0, FANOUT_BATCH_SIZE - 1)
  for _, member in ipairs(members) do
    part(member)
  end
  if #members > 0 then redis.call('ZREMRANGEBYRANK', key, 0, #members - 1) end
  return #members
end

-- Deletes up to FANOUT_BATCH_SIZE likes and comments of a deleted status, and withdraws their notifications. `uid` is
-- its author, '' if unknown. Returns whether that was all.
local function delete_status_dependents(status, uid)
  local likers = remove_members(KEY.likes .. status, function(liker)
    redis.call('ZREM', KEY.liked .. liker, status)
    withdraw_notification(uid, 'like', liker, status)
  end)
  local comments = likers < FANOUT_BATCH_SIZE and remove_members(KEY.comments .. status, function(comment)
    local kept = redis.call('HMGET', KEY.comment .. comment, 'uid', 'mentioned')
    withdraw_notification(uid, 'comment', kept[1] or '', comment)
    for who in (kept[2] or ''):gmatch('%S+') do
      withdraw_notification(who, 'mention', kept[1], 'c' .. comment)
    end
    redis.call('DEL', KEY.comment .. comment)
  end) or FANOUT_BATCH_SIZE
  if comments == FANOUT_BATCH_SIZE then return false end
  redis.call('DEL', KEY.replies .. status, KEY.reposts .. status)
  return true
end

-- Deletes a page of what depends on a deleted status. With the last page it finishes the job; otherwise the job is due
-- again in `hold_ms`. Returns 'more', 'again' or 'done'.
local function continue_status_cleanup(job, hold_ms)
  continue_job(job, 'rest', '', '', hold_ms)
  return delete_status_dependents(job.status, job.uid) and finish_job(job) or 'more'
end
