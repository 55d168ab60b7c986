-- Deletes a status. The caller has checked that the user may delete it.

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

-- Appends the entry and deletes all that can go at once. The entry carries the JSON and the facts as they were at
-- posting, so it matches like the post. Returns the position, the fence of the job that cleans up the rest (the job of
-- the status's fan-out: timelines, likes and comments), and the first readers whose timelines may have it.
local function remove_status(row, ms, seq, n)
  local id, uid, key = row.id, row.uid, KEY.status .. row.id
  local kept = redis.call('HMGET', key, 'original', 'in_reply_to', 'mentioned', 'tags', 'in_reply_to_uid', 'facts',
    'conversation', 'audience')
  local as_posted = status_json(row.head .. (kept[1] and ',"original":' .. kept[1] or ''), '0', '0', '0')
  local foreign_id = row.head:match('^{"id":"%d+",("foreign_id":"[^"]*",)') or ''
  local position = append_entry('delete', kept[8], '{"wire":{"status":{"id":"' .. id .. '",' .. foreign_id .. '"uid":"'
    .. uid .. '","deleted":true}},"facts":{"status":' .. as_posted .. (kept[6] and ',' .. kept[6] or '') .. '}}', ms, seq, n)
  redis.call('DEL', key)
  withdraw_notifications_of(row, kept[5], kept[3] or '')
  redis.call('ZREM', KEY.thread .. kept[7], id)
  if kept[2] then redis.call('ZREM', KEY.replies .. kept[2], id) end
  if row.origin and redis.call('EXISTS', KEY.status .. row.origin) == 1 then
    redis.call('HINCRBY', KEY.status .. row.origin, 'reposts', -1)
  end
  if row.origin then redis.call('ZREM', KEY.reposts .. row.origin, id) end
  for who in (kept[3] or ''):gmatch('%S+') do
    redis.call('ZREM', KEY.mentions .. who, id)
  end
  if row.group ~= '' then
    redis.call('ZREM', KEY.grouped .. row.group, id)
  else
    redis.call('ZREM', KEY.profile .. uid, id)
    redis.call('HINCRBY', KEY.user .. uid, 'posts', -1)
    for tag in (kept[4] or ''):gmatch('%S+') do
      redis.call('ZREM', KEY.tag .. tag, id)
    end
  end
  redis.call('HINCRBY', KEY.user .. uid, 'deleted', 1)
  local fence = enqueue_job('status-' .. id, 'clean', ms, 'uid', uid, 'status', id)
  return position, fence, first_readers(uid)
end
