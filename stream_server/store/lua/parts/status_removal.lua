-- Deletes a status. The caller has checked that the status may go.

-- Withdraws the notifications that the status sent, because notifications are capped and must not be crowded out.
local function withdraw_notifications_of(row, in_reply_to_uid, mentioned)
  for who in mentioned:gmatch('%S+') do
    withdraw_notification(who, 'mention', row.uid, row.id)
  end
  if in_reply_to_uid then withdraw_notification(in_reply_to_uid, 'reply', row.uid, row.id) end
  local author = row.origin and redis.call('HGET', KEY.status .. row.origin, 'uid')
  if author then
    withdraw_notification(author, row.wordless and 'repost' or 'quote', row.uid, row.id)
  end
end

-- Deletes a status and all that refers to it and can go at once. Its likes and comments remain, unless their keys are
-- among those behind `conversation`, which go too.
local function unlink_status(row, in_reply_to, in_reply_to_uid, mentioned, tags, conversation, ...)
  local id, uid = row.id, row.uid
  redis.call('UNLINK', KEY.status .. id, ...)
  withdraw_notifications_of(row, in_reply_to_uid, mentioned or '')
  redis.call('ZREM', KEY.thread .. conversation, id)
  if in_reply_to then redis.call('ZREM', KEY.replies .. in_reply_to, id) end
  if row.origin and redis.call('EXISTS', KEY.status .. row.origin) == 1 then
    redis.call('HINCRBY', KEY.status .. row.origin, 'reposts', -1)
  end
  if row.origin then redis.call('ZREM', KEY.reposts .. row.origin, id) end
  for who in (mentioned or ''):gmatch('%S+') do
    redis.call('ZREM', KEY.mentions .. who, id)
  end
  if row.group ~= '' then
    redis.call('ZREM', KEY.grouped .. row.group, id)
  else
    redis.call('ZREM', KEY.profile .. uid, id)
    redis.call('HINCRBY', KEY.user .. uid, 'posts', -1)
    for tag in (tags or ''):gmatch('%S+') do
      redis.call('ZREM', KEY.tag .. tag, id)
    end
  end
end

-- How many likes and comments of a status its delete removes in the same step.
local MAX_DEPENDENTS_IN_STEP = 20

-- Whether the script of the delete does all that follows: no job is at work on the status, few timelines may have it, and
-- few likes and comments are left behind.
local function ends_in_step(row, people, lists)
  local job = 'status-' .. row.id
  local dependents = tonumber(row.likes) + tonumber(row.comments)
  return fit_in_step(people, lists) and dependents < math.min(MAX_DEPENDENTS, MAX_DEPENDENTS_IN_STEP)
    and not redis.call('ZSCORE', KEY.due, job) and redis.call('EXISTS', KEY.job .. job) == 0
end

-- Deletes what refers to the status, its likes and comments, and its id on timelines. `kept` are the values behind `row`
-- of unlink_status.
local function remove_at_once(row, people, lists, asleep, ms, kept)
  local id, uid = row.id, row.uid
  if row.likes == '0' and row.comments == '0' then
    unlink_status(row, kept[1], kept[2], kept[3], kept[4], kept[5], KEY.likes .. id, KEY.comments .. id,
      KEY.replies .. id, KEY.reposts .. id)
  else
    unlink_status(row, unpack(kept, 1, 5))
    delete_status_dependents(id, uid)
  end
  if row.group == '' then remove_in_step(id, uid, people, lists, asleep, ms) end
end

-- Appends the entry by `append`, and deletes all that can go at once. The entry carries the JSON and the facts as they
-- were at posting, so it matches like the post. Returns the position, the fence of the job that cleans up the rest (the
-- job of the status's fan-out: timelines, likes and comments; '' if nothing is left), and the first readers whose
-- timelines may have it. Returns nil and the reply if `append` finds an earlier one.
local function remove_status(append, row, ms, seq, n)
  local id, uid, key = row.id, row.uid, KEY.status .. row.id
  local kept = redis.call('HMGET', key, 'in_reply_to', 'in_reply_to_uid', 'mentioned', 'tags', 'conversation', 'original',
    'facts', 'audience')
  local as_posted = status_json(row.head .. (kept[6] and ',"original":' .. kept[6] or ''), '0', '0', '0')
  local foreign_id = row.head:match('^{"id":"%d+",("foreign_id":"[^"]*",)') or ''
  local facts = kept[7] and ',' .. unpack_json(kept[7]) or ''
  local body = '{"wire":{"status":{"id":"' .. id .. '",' .. foreign_id .. '"uid":"' .. uid
    .. '","deleted":true}},"facts":{"status":' .. as_posted .. facts .. '}}'
  local position, earlier = append('delete', removal_audience(kept[8], id), body, ms, seq, n)
  if not position then return nil, earlier end
  redis.call('HINCRBY', KEY.user .. uid, 'deleted', 1)
  local people, lists, asleep = {}, {}, {}
  if row.group == '' then people, lists, asleep = first_readers(uid) end
  if ends_in_step(row, people, lists) then
    remove_at_once(row, people, lists, asleep, ms, kept)
    return position, '', {}, {}, {}
  end
  unlink_status(row, unpack(kept, 1, 5))
  return position, enqueue_job('status-' .. id, 'clean', ms, 'uid', uid, 'status', id), people, lists, asleep
end
