-- How accounts go. One step marks the user as gone: nobody sees what the user wrote, and no token of the user is valid. Of the
-- user's hash a *husk* is left, which says so to reads and scripts, and counts for jobs. A job `erase-<uid>` then removes
-- what sets of the user name, a part in each pass. What no such set names is found by the job `sweep`, which goes over the
-- names of all keys once for all users who wait for it. At its end it removes the husks. An index of what each user wrote
-- would make this quicker, and each post and comment would pay for it.
-- How many posts, talks, and other members of a set one pass removes.
local MAX_ERASED_POSTS = 25
local MAX_ERASED_TALKS = 20
local MAX_ERASED = 200
-- How many names of statuses the commands of one pass have at most, which remove an author from timelines.
local MAX_ERASED_IDS = 20000
-- How long a job waits until the fan-outs of the user's posts have ended.
local ERASE_WAIT_MS = 500
-- How many keys one pass of the sweep looks at, and how many users it sweeps together.
local SWEPT_KEYS = 500
local MAX_SWEPT_USERS = 100

-- Marks a user as gone, and leaves the job that removes the rest. The first entry ends the streams and hides the user in
-- all servers, the second tells consumers. The husk keeps what the deletes of the posts and the jobs of the user need.
-- Returns the position of the first entry.
local function delete_account(user, ms, seq, n)
  local uid, foreign_id = user.id, user.card:match('"foreign_id":"([^"]*)"$')
  local position, now = append_entry('suspend', AUDIENCE_NONE, '{"wire":{"uid":"' .. uid .. '","deleted":true}}', ms, seq, n)
  append_entry('user_delete', PUBLIC, '{"wire":{"user":{"id":"' .. uid .. '",' .. (foreign_id and '"foreign_id":"'
    .. foreign_id .. '",' or '') .. '"deleted":true}}}', following_position(ms, seq, n))
  local email = redis.call('HGET', KEY.user .. uid, 'email')
  if email then redis.call('HDEL', KEY.emails, email:lower()) end
  redis.call('HSET', KEY.logins, user.login:lower(), NO_USER)
  if foreign_id then redis.call('HDEL', FOREIGN_USERS, foreign_id) end
  store_names(uid, '')
  local stays = {protected = true, open_times = true, left = true, deleted = true, busy = true}
  for _, field in ipairs(redis.call('HKEYS', KEY.user .. uid)) do
    if not stays[field] then redis.call('HDEL', KEY.user .. uid, field) end
  end
  redis.call('HSET', KEY.user .. uid, 'suspended', '1')
  redis.call('ZADD', KEY.suspended, now, uid)
  redis.call('ZADD', KEY.gone, now, uid)
  forget_unacked(uid, redis.call('HKEYS', KEY.subscriptions .. uid))
  redis.call('UNLINK', KEY.sessions .. uid, KEY.rules .. uid, KEY.removed_rules .. uid, KEY.notices .. uid,
    KEY.subscriptions .. uid, KEY.mentions .. uid, KEY.favorites .. uid, KEY.mutes .. uid, KEY.ended .. uid)
  restart_fan_outs({[uid] = true}) -- so that each counts as busy
  enqueue_job('erase-' .. uid, 'erase', tonumber(now) - JOB_GRACE_MS, 'owner', uid)
  return position
end

-- Deletes the account of a user. `password` is the hash that the user's password had ('' without one), or '-' if an
-- administrator does this. A repetition changes nothing. Reply: position or `unchanged`.
function deed.account_delete(actor, uid, password) -- RIGHTS uid
  local by_admin = password == '-'
  if by_admin and actor == uid then refuse('ONESELF id') end
  local user = find_user(uid)
  if not user and redis.call('ZSCORE', KEY.gone, uid) then return keep_reply('unchanged') end
  if not user then refuse('NOT_FOUND user id') end
  if not by_admin and (redis.call('HGET', KEY.user .. uid, 'password') or '') ~= password then refuse('WRONG password') end
  local position = delete_account(user, next_position())
  if by_admin then audit(actor, 'delete_user', uid, '') end
  return keep_reply(position)
end

-- Changes a counter of a user, status, list or group that exists. A husk has none.
local function change_counter(key, counter, by)
  if redis.call('HEXISTS', key, counter) == 1 then redis.call('HINCRBY', key, counter, by) end
end

-- The readers whose timelines are next to lose the statuses of a user who is gone: followers, then lists, with scores. And
-- the statuses: timelines may be longer than their maximum for a while.
local function readers_to_leave(uid)
  local newest = redis.call('ZRANGE', KEY.profile .. uid, 0, 2 * TIMELINE_MAX - 1, 'REV')
  local most = math.max(1, math.min(FANOUT_BATCH_SIZE, MAX_ERASED, math.floor(MAX_ERASED_IDS / math.max(1, #newest))))
  local people = redis.call('ZRANGE', KEY.followers .. uid, 0, most - 1, 'WITHSCORES')
  local lists = #people == 0 and redis.call('ZRANGE', KEY.listed .. uid, 0, most - 1, 'WITHSCORES') or {}
  return people, newest, lists
end

-- Removes a follower of a user who is gone. If the user was ever protected, the end of the follow is kept, because a replay
-- sends the deletes of such posts to those who could read them.
local function erase_follower(uid, follower, was_protected)
  local began = redis.call('ZSCORE', KEY.following .. follower, uid)
  if began and was_protected then
    end_relation_with(KEY.following, follower, uid, began, to_text(now_ms()))
  elseif began then
    redis.call('ZREM', KEY.following .. follower, uid)
  end
  if began then change_counter(KEY.user .. follower, 'following', -1) end
  withdraw_notification(follower, 'approve', uid, '')
  redis.call('ZREM', KEY.followers .. uid, follower)
end

-- Removes these members of `key`, with `part` of each: a part of what names a user who is gone. Returns whether there were any.
local function erase_members(key, most, part)
  return remove_members(key, most, part) > 0
end

-- Deletes a post of a user who is gone, with its text in what others made of it. Returns whether that was all.
local function erase_post(id)
  local row = find_status(id)
  if not row then return true end
  local reposts = redis.call('ZRANGE', KEY.reposts .. id, 0, MAX_ERASED - 1)
  for _, repost in ipairs(reposts) do
    redis.call('HDEL', KEY.status .. repost, 'original')
    redis.call('ZREM', KEY.reposts .. id, repost)
  end
  if #reposts > 0 then redis.call('HINCRBY', KEY.status .. id, 'reposts', to_text(-#reposts)) end
  if #reposts == MAX_ERASED then return false end
  remove_status(append_entry, true, row, next_position())
  return true
end

-- Takes a user who is gone out of a group. A group of the user gets another owner: who of the members in good standing has
-- joined first. A group without such a member is deleted.
local function erase_membership(uid, id)
  local group = find_circle(KEY.group, id)
  redis.call('ZREM', KEY.joined .. id, uid)
  if not group then return end
  change_counter(KEY.group .. id, 'members', -1)
  if group.uid ~= uid then return end
  group.members = group.members - 1
  for _, member in ipairs(redis.call('ZRANGE', KEY.joined .. id, 0, -1)) do
    local heir = find_user(member)
    if heir and not heir.suspended then
      group.uid = member
      append_entry('group_update', 'group:' .. id, '{"wire":{"group":' .. circle_json(group) .. '}}', next_position())
      redis.call('HSET', KEY.group .. id, 'uid', member)
      return
    end
  end
  delete_group(group, next_position())
end

-- Ends the part of a user who is gone in a talk. The user stays among its people, so that a talk of two never becomes one of
-- the other user alone. A talk that nobody else has is deleted.
local function erase_talk(uid, id)
  local talk, others, is_had = redis.call('HGET', KEY.talk .. id, 'people') or '', {}, false
  for other in talk:gmatch('%S+') do
    if other ~= uid then
      others[#others + 1] = other
      redis.call('ZREM', KEY.strangers .. other, uid)
      is_had = is_had or has_accepted(other, id) or redis.call('ZSCORE', KEY.talk_requests .. other, id)
    end
  end
  if #others == 1 then
    local one, other = uid, others[1]
    if tonumber(one) > tonumber(other) then one, other = other, one end
    redis.call('DEL', KEY.pair .. one .. ':' .. other)
  end
  redis.call('HDEL', KEY.marks .. id, uid)
  if not is_had then redis.call('UNLINK', KEY.talk .. id, KEY.messages .. id, KEY.marks .. id) end
end

-- Removes one part of the sets that name a user who is gone, and the other end of each member. Returns whether something
-- was left to remove.
local function erase_part(uid)
  -- A set of the user, whose members have the user in a set of their own.
  local function erase_pairs(key, other_key, change)
    return erase_members(key .. uid, MAX_ERASED, function(other)
      redis.call('ZREM', other_key .. other, uid)
      if change then change(other) end
    end)
  end

  local left = {}
  local is_left = erase_pairs(KEY.following, KEY.followers, function(other)
    change_counter(KEY.user .. other, 'followers', -1)
    change_counter(KEY.user .. other, 'left', 1)
    left[other] = true
    withdraw_notification(other, 'follow', uid, '')
  end)
  restart_fan_outs(left)
  return is_left
    or erase_pairs(KEY.asked, KEY.asks, function(other) withdraw_notification(other, 'request', uid, '') end)
    or erase_pairs(KEY.asks, KEY.asked) or erase_pairs(KEY.blocks, KEY.blockers) or erase_pairs(KEY.blockers, KEY.blocks)
    or erase_pairs(KEY.invitations, KEY.invited)
    or erase_pairs(KEY.liked, KEY.likes, function(id)
      change_counter(KEY.status .. id, 'likes', -1)
      withdraw_notification(redis.call('HGET', KEY.status .. id, 'uid') or '', 'like', uid, id)
    end)
    or erase_members(KEY.groups .. uid, 1, function(id) erase_membership(uid, id) end)
    or erase_members(KEY.lists .. uid, MAX_ERASED, function(id)
      redis.call('DEL', KEY.list .. id)
      enqueue_job('drop-list-' .. id, 'drop', now_ms() - JOB_GRACE_MS, 'owner', id)
    end)
    or erase_members(KEY.talks .. uid, MAX_ERASED_TALKS, function(id) erase_talk(uid, id) end)
    or erase_members(KEY.talk_requests .. uid, MAX_ERASED_TALKS, function(id) erase_talk(uid, id) end)
end

-- Deletes the newest posts of a user who is gone. Returns whether there were any.
local function erase_posts(uid)
  local ids = redis.call('ZRANGE', KEY.profile .. uid, 0, MAX_ERASED_POSTS - 1, 'REV')
  for _, id in ipairs(ids) do
    if not erase_post(id) then return true end
    redis.call('ZREM', KEY.profile .. uid, id)
  end
  return #ids > 0
end

-- Removes a part of what a user who is gone left. From REST on there are followers, then lists with the user, from whose
-- timelines the user's statuses have been removed; `count` is the number of these followers. Those with a `!` get a refill.
-- Without any, another part goes. The last pass hands the user over to the sweep. Reply: as of run.job_advance; 'again' while fan-outs of
-- the user's posts run.
function run.job_erase(id, fence, count, ...)
  local job = find_held_job(id, fence)
  if not job then return 'stale' end
  local uid = job.owner
  local kept = redis.call('HMGET', KEY.user .. uid, 'busy', 'open_times', 'protected')
  local is_busy = tonumber(kept[1] or '0') > 0 and redis.call('EXISTS', KEY.followers .. uid, KEY.listed .. uid) > 0
  continue_job(job, '', '', '', is_busy and ERASE_WAIT_MS or JOB_LEASE_MS)
  if is_busy then return 'again' end
  for at = REST, #ARGV do
    local reader, is_short = ARGV[at]:match('^(%d+)(!?)$')
    local timelines = at < REST + tonumber(count) and 'home' or 'list'
    if timelines == 'home' then
      erase_follower(uid, reader, kept[2] or kept[3] == '1')
    else
      redis.call('ZREM', KEY.members .. reader, uid)
      redis.call('ZREM', KEY.listed .. uid, reader)
      change_counter(KEY.list .. reader, 'members', -1)
    end
    if is_short == '!' and not (timelines == 'home' and redis.call('ZSCORE', KEY.asleep, reader)) then
      enqueue_job(refill_job(timelines, reader), 'refill', now_ms() - JOB_GRACE_MS, 'owner', reader)
    end
  end
  if #ARGV >= REST or erase_part(uid) or erase_posts(uid) then return 'more' end
  local strangers = redis.call('ZRANGE', KEY.strangers .. uid, 0, MAX_ERASED_TALKS - 1, 'WITHSCORES')
  for at = 1, #strangers, 2 do
    erase_talk(uid, strangers[at + 1])
    redis.call('ZREM', KEY.strangers .. uid, strangers[at])
  end
  if #strangers > 0 then return 'more' end
  redis.call('ZADD', KEY.unswept, to_text(now_ms()), uid)
  if redis.call('EXISTS', KEY.job .. 'sweep') == 0 then
    enqueue_job('sweep', 'sweep', now_ms() - JOB_GRACE_MS, 'owner', NO_USER)
  end
  return finish_job(job)
end

-- Removes what the key `name` has of users who are gone: `uids`, and as a set `gone`. Returns whether that was all, and
-- whether there was something.
local function sweep_key(name, uids, gone)
  local function id_of(prefix)
    return name:sub(1, #prefix) == prefix and name:sub(#prefix + 1)
  end

  local status, comment, message = id_of(KEY.status), id_of(KEY.comment), id_of(KEY.message)
  if status or comment or message then
    local author, original = unpack(redis.call('HMGET', name, 'uid', 'original'))
    if not author or not gone[author] then
      -- The original may have been deleted before the account, so that erase_post does not find who quotes it.
      local is_trace = original and gone[original:match('"uid":"(%d+)"')]
      if is_trace then redis.call('HDEL', name, 'original') end
      return true, is_trace
    end
    if status then return erase_post(status), true end
    local row = comment and find_status(redis.call('HGET', name, 'status'))
    if row then
      remove_comment(comment, row, next_position())
    elseif comment then
      return true, false -- a job deletes what depends on a deleted status
    else
      redis.call('ZREM', KEY.messages .. (redis.call('HGET', name, 'talk') or ''), message)
      redis.call('DEL', name)
    end
    return true, true
  elseif id_of(KEY.mutes) then
    redis.call('ZREM', name, unpack(uids))
  end
  return true, false
end

-- Looks at a page of all keys, or of the users of other issuers (phase 'subjects'), for what is left of users who are gone.
-- The job's score is when the sweep began: it is for those who waited then. Its member is the cursor.
-- Reply: 'stale', 'more' or 'done'; behind it the users of whom nothing is left now.
function run.job_sweep(id, fence)
  local job = find_held_job(id, fence)
  if not job then return {'stale'} end
  local begun, cursor, phase = job.score ~= '' and job.score or to_text(now_ms() - 1), job.member, job.phase
  continue_job(job, phase, begun, cursor, JOB_LEASE_MS)
  local uids = redis.call('ZRANGE', KEY.unswept, '-inf', begun, 'BYSCORE', 'LIMIT', 0, MAX_SWEPT_USERS)
  local gone, page, work = {}, nil, 0
  for _, uid in ipairs(uids) do gone[uid] = true end
  if phase == '' and #uids > 0 then
    page = redis.call('SCAN', cursor == '' and '0' or cursor, 'COUNT', SWEPT_KEYS)
    for _, name in ipairs(page[2]) do
      local is_all, was_there = sweep_key(name, uids, gone)
      work = work + (was_there and 1 or 0)
      if not is_all or work > MAX_ERASED then return {'more'} end -- the same page comes again
    end
    phase = page[1] == '0' and 'subjects' or ''
  elseif #uids > 0 then
    page = redis.call('HSCAN', KEY.subjects, cursor == '' and '0' or cursor, 'COUNT', SWEPT_KEYS)
    for at = 1, #page[2], 2 do
      if gone[page[2][at + 1]] then redis.call('HDEL', KEY.subjects, page[2][at]) end
    end
    phase = page[1] == '0' and 'end' or phase
  end
  if page and phase ~= 'end' then
    continue_job(job, phase, begun, page[1] == '0' and '' or page[1], JOB_LEASE_MS)
    return {'more'}
  end
  for _, uid in ipairs(uids) do
    redis.call('DEL', KEY.user .. uid)
    redis.call('ZREM', KEY.suspended, uid)
    redis.call('ZREM', KEY.visited, uid)
    redis.call('ZREM', KEY.asleep, uid)
    redis.call('SREM', KEY.protected, uid)
    redis.call('ZREM', KEY.unswept, uid)
    -- Others may have undone likes of the user's posts meanwhile, with an entry each. So the log shows the user until now.
    redis.call('ZADD', KEY.gone, to_text(now_ms()), uid)
  end
  if redis.call('EXISTS', KEY.unswept) == 0 then return {finish_job(job), unpack(uids)} end
  continue_job(job, '', '', '', JOB_LEASE_MS)
  return {'more', unpack(uids)}
end
