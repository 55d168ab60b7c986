-- What hung on something that is gone. Needs the parts users, visibility, notifications and job_passes.

-- The first PASS members leave a set, each with what `part` does about it; gives how many.
local function strip(key, part)
  local members = redis.call('ZRANGE', key, 0, PASS - 1)
  for _, member in ipairs(members) do
    part(member)
  end
  if #members > 0 then
    redis.call('ZREMRANGEBYRANK', key, 0, #members - 1)
  end
  return #members
end

-- Up to PASS of the likes and PASS of the comments of a status that is gone, which was by `uid` ('' if nobody knows any
-- more), go, and nobody is told of them any more; gives whether that was all.
local function unburden(status, uid)
  local likers = strip(KEY.likes .. status, function(liker)
    redis.call('ZREM', KEY.liked .. liker, status)
    unnotify(uid, 'like', liker, status)
  end)
  local comments = likers < PASS and strip(KEY.comments .. status, function(comment)
    local kept = redis.call('HMGET', KEY.comment .. comment, 'uid', 'mentioned')
    unnotify(uid, 'comment', kept[1] or '', comment)
    for who in (kept[2] or ''):gmatch('%S+') do
      unnotify(who, 'mention', kept[1], 'c' .. comment)
    end
    redis.call('DEL', KEY.comment .. comment)
  end) or PASS
  if comments == PASS then
    return false
  end
  redis.call('DEL', KEY.replies .. status, KEY.reposts .. status)
  return true
end

-- A deleted status is rid of a page of what hung on it, and with the last of it of its job, which is due again in
-- `hold_ms` otherwise. Gives 'more', 'again' or 'done'.
local function lighten(job, hold_ms)
  go_on(job, 'rest', '', '', hold_ms)
  return unburden(job.status, job.uid) and finish(job) or 'more'
end
