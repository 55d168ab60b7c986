-- What hung on something that is gone. Needs the parts people, sight, notices and queue.

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

-- Up to PASS of the likes and PASS of the comments of a deleted status go, and with the last of them its job, which is
-- due again in `hold_ms` otherwise; nobody is told of them any more. Gives 'more', 'again' or 'done'.
local function lighten(job, hold_ms)
  go_on(job, 'rest', '', '', hold_ms)
  local likers = strip(KEY.likes .. job.status, function(uid)
    redis.call('ZREM', KEY.liked .. uid, job.status)
    unnotify(job.uid, 'like', uid, job.status)
  end)
  local comments = likers < PASS and strip(KEY.comments .. job.status, function(comment)
    local kept = redis.call('HMGET', KEY.comment .. comment, 'uid', 'mentioned')
    unnotify(job.uid, 'comment', kept[1] or '', comment)
    for who in (kept[2] or ''):gmatch('%S+') do
      unnotify(who, 'mention', kept[1], 'c' .. comment)
    end
    redis.call('DEL', KEY.comment .. comment)
  end) or PASS
  if comments == PASS then
    return 'more'
  end
  redis.call('DEL', KEY.replies .. job.status, KEY.reposts .. job.status)
  return finish(job)
end
