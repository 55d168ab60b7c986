-- Removes the first `most` members of a sorted set and calls `part` for each. Returns how many.
local function remove_members(key, most, part)
  local members = redis.call('ZRANGE', key, 0, most - 1)
  for _, member in ipairs(members) do
    part(member)
  end
  if #members > 0 then redis.call('ZREMRANGEBYRANK', key, 0, #members - 1) end
  return #members
end

-- How many likes, and how many comments, of a deleted status one step removes: both together take a millisecond or two.
local MAX_DEPENDENTS = math.min(FANOUT_BATCH_SIZE, 100)

-- Deletes up to MAX_DEPENDENTS likes and comments of a deleted status, and withdraws their notifications. `uid` is
-- its author, '' if unknown. Comments go as the status went: if entries of the log show the status although it is too
-- old, those that show the comments are shown, too. Returns whether that was all.
local function delete_status_dependents(status, uid)
  local left = redis.call('ZSCORE', KEY.expired, status)
  local likers = remove_members(KEY.likes .. status, MAX_DEPENDENTS, function(liker)
    redis.call('ZREM', KEY.liked .. liker, status)
    withdraw_notification(uid, 'like', liker, status)
  end)
  local comments = likers < MAX_DEPENDENTS and remove_members(KEY.comments .. status, MAX_DEPENDENTS, function(comment)
    local kept = redis.call('HMGET', KEY.comment .. comment, 'uid', 'mentioned')
    withdraw_notification(uid, 'comment', kept[1] or '', comment)
    for who in (kept[2] or ''):gmatch('%S+') do
      withdraw_notification(who, 'mention', kept[1], 'c' .. comment)
    end
    redis.call('DEL', KEY.comment .. comment)
    if left then redis.call('ZADD', KEY.expired, left, comment) end
  end) or MAX_DEPENDENTS
  if comments == MAX_DEPENDENTS then return false end
  redis.call('UNLINK', KEY.replies .. status, KEY.reposts .. status) -- a million members, freed in another thread
  return true
end

-- Deletes a page of what depends on a deleted status. With the last page it finishes the job; otherwise the job is due
-- again in `hold_ms`. Returns 'more', 'again' or 'done'.
local function continue_status_cleanup(job, hold_ms)
  continue_job(job, 'rest', '', '', hold_ms)
  return delete_status_dependents(job.status, job.uid) and finish_job(job) or 'more'
end
