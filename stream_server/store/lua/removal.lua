-- How statuses go: by a delete, or because of their age.
-- How many likes, and how many comments, of a deleted status one step removes: both together take a millisecond or two.
local MAX_DEPENDENTS = 100
-- How many likes and comments of a status its delete removes in the same step.
local MAX_DEPENDENTS_IN_STEP = 20

-- The facts by which filters match a post beside its JSON, as values: the author's counters and bio, the answered login.
-- They are kept, so that a delete matches as its post did.
local function kept_facts(author, answered_login)
  local bio = ''
  if not author.card:find(',"bio":null,"url":', 1, true) then bio = author.card:match('"bio":(.*),"url":') end
  return author.followers .. '\1' .. author.following .. '\1' .. author.posts .. '\1' .. bio .. '\1' .. answered_login
end

-- The kept facts of a status as JSON members.
local function kept_facts_json(row, facts)
  local followers, following, posts, bio, answered = facts:match('^(%d+)\1(%d+)\1(%d+)\1(.*)\1(.-)$')
  return '"author":{"id":"' .. row.uid .. '","login":"' .. row.login .. '"' .. (bio ~= '' and ',"bio":' .. bio or '')
    .. ',"followers":' .. followers .. ',"following":' .. following .. ',"posts":' .. posts .. '}'
    .. (answered ~= '' and ',"reply_to_login":"' .. answered .. '"' or '')
end

-- Removes the first `most` members of a sorted set and calls `part` for each. Returns how many.
local function remove_members(key, most, part)
  local members = redis.call('ZRANGE', key, 0, most - 1)
  for _, member in ipairs(members) do
    part(member)
  end
  if #members > 0 then redis.call('ZREMRANGEBYRANK', key, 0, #members - 1) end
  return #members
end

-- Deletes up to MAX_DEPENDENTS likes and comments of a deleted status, and withdraws their notifications. `uid` is
-- its author, '' if unknown. Comments go as the status went: if entries of the log show the status although it is too
-- old, those that show the comments are shown, too. Returns whether that was all.
local function delete_status_dependents(status, uid)
  local left, most = redis.call('ZSCORE', KEY.expired, status), math.min(FANOUT_BATCH_SIZE, MAX_DEPENDENTS)
  local likers = remove_members(KEY.likes .. status, most, function(liker)
    redis.call('ZREM', KEY.liked .. liker, status)
    withdraw_notification(uid, 'like', liker, status)
  end)
  local comments = likers < most and remove_members(KEY.comments .. status, most, function(comment)
    local kept = redis.call('HMGET', KEY.comment .. comment, 'uid', 'mentioned')
    withdraw_notification(uid, 'comment', kept[1] or '', comment)
    for other in (kept[2] or ''):gmatch('%S+') do
      withdraw_notification(other, 'mention', kept[1], 'c' .. comment)
    end
    redis.call('DEL', KEY.comment .. comment)
    if left then redis.call('ZADD', KEY.expired, left, comment) end
  end) or most
  if comments == most then return false end
  redis.call('UNLINK', KEY.replies .. status, KEY.reposts .. status) -- a million members, freed in another thread
  return true
end

-- Deletes a status and all that refers to it and can go at once. Its likes and comments remain, unless it has none
-- (`is_bare`). Its notifications go, because they are capped and must not be crowded out. `ms` is the time of the removal.
local function unlink_status(row, is_bare, ms, in_reply_to, in_reply_to_uid, mentioned, tags)
  local id, uid = row.id, row.uid
  local sets = is_bare and {KEY.likes .. id, KEY.comments .. id, KEY.replies .. id, KEY.reposts .. id} or {}
  redis.call('UNLINK', KEY.status .. id, unpack(sets))
  -- Pages ask whether any status went while they were read. The number alone would not do: a copy of Redis that lost a
  -- removal comes to the same number with another one, but later.
  redis.call('HINCRBY', KEY.meta, 'removed', 1)
  redis.call('HSET', KEY.meta, 'removed_ms', to_text(ms))
  redis.call('ZREM', KEY.thread .. row.conversation, id)
  for other in (mentioned or ''):gmatch('%S+') do
    withdraw_notification(other, 'mention', uid, id)
    redis.call('ZREM', KEY.mentions .. other, id)
  end
  if in_reply_to then
    withdraw_notification(in_reply_to_uid, 'reply', uid, id)
    redis.call('ZREM', KEY.replies .. in_reply_to, id)
  end
  local author = row.origin and redis.call('HGET', KEY.status .. row.origin, 'uid')
  if author then
    withdraw_notification(author, is_wordless(row) and 'repost' or 'quote', uid, id)
    redis.call('HINCRBY', KEY.status .. row.origin, 'reposts', -1)
  end
  if row.origin then redis.call('ZREM', KEY.reposts .. row.origin, id) end
  if row.group ~= '' then
    redis.call('ZREM', KEY.grouped .. row.group, id)
    return
  end
  redis.call('ZREM', KEY.profile .. uid, id)
  redis.call('HINCRBY', KEY.user .. uid, 'posts', -1)
  for tag in (tags or ''):gmatch('%S+') do
    redis.call('ZREM', KEY.tag .. tag, id)
  end
end

-- Whether no job is at work on a status.
local function is_without_job(id)
  return not redis.call('ZSCORE', KEY.due, 'status-' .. id) and redis.call('EXISTS', KEY.job .. 'status-' .. id) == 0
end

-- The earlier versions of a status, as edit.lua keeps them, as a JSON member of facts; '' if it was never edited.
local function versions_fact(versions)
  return versions and ',"before":[' .. versions:sub(1, -2):gsub('\1', ',') .. ']' or ''
end

-- Deletes a status; the caller has checked that it may go. Appends the entry by `append`, and deletes all that can go at
-- once. The entry carries the JSON and the facts as they were at posting, so it matches like the post. Without a job at
-- work on the status, and if few timelines may have it and few likes and comments are left behind, this step does all that
-- follows (with `in_step`). Returns a table: `position`; `fence` of the job that cleans up the rest (the job of the status's
-- fan-out: timelines, likes and comments; '' if nothing is left); the first readers whose timelines may have it then, as of
-- first_readers: `people`, `lists` and `asleep`.
local function remove_status(append, in_step, row, ms, seq, n, has_sleepers)
  local id, uid = row.id, row.uid
  local kept = redis.call('HMGET', KEY.status .. id, 'in_reply_to', 'in_reply_to_uid', 'mentioned', 'tags', 'original',
    'facts', 'audience', 'versions')
  local foreign_id = row.foreign_id ~= '' and '"foreign_id":"' .. row.foreign_id .. '",' or ''
  local as_posted = setmetatable({likes = '0', comments = '0', reposts = '0'}, {__index = row})
  local audience = removal_audience(kept[7], id, uid, uid)
  -- Who may not see the author of the original sees a quote without it, but no repost.
  local reposted_uid = kept[5] and is_wordless(row) and kept[5]:match('"uid":"(%d+)"') or uid
  local body = '{"wire":{"status":{"id":"' .. id .. '",' .. foreign_id .. '"uid":"' .. uid
    .. '","deleted":true}},"facts":{"status":' .. status_json(as_posted, kept[5] and ',"original":' .. kept[5] or '') .. ','
    .. kept_facts_json(row, kept[6]) .. versions_fact(kept[8]) .. open_times_fact(audience, uid, reposted_uid, id) .. '}}'
  local position = append('delete', audience, body, ms, seq, n)
  redis.call('HINCRBY', KEY.user .. uid, 'deleted', 1)
  local people, lists, asleep = {}, {}, {}
  if row.group == '' then people, lists, asleep = first_readers(uid, has_sleepers) end
  local dependents = tonumber(row.likes) + tonumber(row.comments)
  local is_last = in_step and fit_in_step(people, lists)
    and dependents < math.min(FANOUT_BATCH_SIZE, MAX_DEPENDENTS_IN_STEP) and is_without_job(id)
  unlink_status(row, is_last and dependents == 0, ms, unpack(kept, 1, 4))
  if not is_last then
    local fence = enqueue_job('status-' .. id, 'clean', ms, 'uid', uid, 'status', id)
    return {position = position, fence = fence, people = people, lists = lists, asleep = asleep}
  end
  if dependents > 0 then delete_status_dependents(id, uid) end
  if row.group == '' then
    change_in_step(uid, people, lists, asleep, ms, function(timeline) return redis.pcall('ZREM', timeline, id) end)
  end
  return {position = position, fence = '', people = {}, lists = {}, asleep = {}}
end

-- Deletes a status of the user. Reply: position; fence of the job that cleans up ('' for none), and what first_readers
-- returns: the readers whose timelines may have the status.
function claim.status_delete(uid, id) --> fence, followers, lists, asleep
  require_active_user(uid)
  local row = find_status(id)
  if not row or row.uid ~= uid and not find_visible_status(uid, id) then refuse('NOT_FOUND status') end
  if row.uid ~= uid then refuse('NOT_YOURS status') end
  local left = remove_status(claim_entry, true, row, next_position())
  return {appended, left.position, left.fence, left.people, left.lists, left.asleep}
end

-- Removes statuses because of their age. This makes no entry on the log. A status stays if it has changed since it was
-- read for the archive. `below` is the id below which statuses leave, `floor_id` that of the log's first entry. From REST on
-- there are for each status: id, likes, comments and id of the newest comment, as they were read. Its reposts may have left
-- since.
-- Reply: a word for each status: 'left', 'changed' or 'gone' (it did not exist). Fewer words than statuses if that was
-- enough for one step: 250 units of work, of which a status is 25 and its dependents at most 150.
function run.statuses_expire(below, floor_id, ...)
  floor_id = tonumber(floor_id)
  local floor_ms, words, work, left, now = math.floor(floor_id / 4096) + EPOCH_MS, {}, 0, 0, now_ms()

  -- Whether an entry of the log may show the status: it was posted, liked, commented or reposted since the first entry.
  local function is_on_log(row, newest_comment, touched)
    if tonumber(row.id) >= floor_id or tonumber(touched or '0') >= floor_ms then return true end
    if newest_comment ~= '' and tonumber(newest_comment) >= floor_id then return true end
    local like = row.likes ~= '0' and redis.call('ZRANGE', KEY.likes .. row.id, -1, -1, 'WITHSCORES')[2]
    if like and tonumber(like) >= floor_ms then return true end
    local repost = row.reposts ~= '0' and redis.call('ZRANGE', KEY.reposts .. row.id, -1, -1)[1]
    return repost and tonumber(repost) >= floor_id
  end

  local function expire(row, newest_comment, cost)
    local kept = redis.call('HMGET', KEY.status .. row.id, 'in_reply_to', 'in_reply_to_uid', 'mentioned', 'tags',
      'touched')
    if is_on_log(row, newest_comment, kept[5]) then redis.call('ZADD', KEY.expired, to_text(now), row.id) end
    unlink_status(row, false, now, unpack(kept, 1, 4))
    if is_without_job(row.id) and cost <= 150 and delete_status_dependents(row.id, row.uid) then return end
    enqueue_job('status-' .. row.id, 'clean', now, 'uid', row.uid, 'status', row.id)
    redis.call('HSET', KEY.job .. 'status-' .. row.id, 'phase', 'rest')
  end

  -- This is the first write, so that a full Redis refuses it and nothing has changed.
  local known = tonumber(redis.call('HGET', KEY.expiry, 'below') or '0')
  redis.call('HSET', KEY.expiry, 'below', to_text(math.max(known, tonumber(below))))
  for at = REST, #ARGV, 4 do
    if work >= 250 then break end
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
      work = work + 25 + math.min(cost, 150)
    end
    words[#words + 1] = word
  end
  redis.call('HINCRBY', KEY.expiry, 'left', to_text(left))
  return words
end
