-- Notifications: a sorted set of `<kind>:<source>:<subject>`, so a repetition is found and an undo can remove it. The
-- subject is the id of a status, of a comment (`c<id>` if the comment mentions the receiver), or empty.

-- `more` is the subject as JSON members or ''; `read` is 'true' or 'false'.
local function notification_json(id, kind, source, more, ms, read)
  return '{"id":"' .. id .. '","kind":"' .. kind .. '","source":' .. user_json(source) .. more .. ',"posted":"'
    .. to_iso8601(ms) .. '","read":' .. read .. '}'
end

-- Notifies a receiver of what the source did. `more` is made by the part notification_subjects, or ''. Returns the
-- position of the step's last entry, which advances if a notification was made. The caller has checked that the
-- receiver may see it.
local function notify(receiver, kind, source, subject, more, ms, seq, n)
  local name = kind .. ':' .. source.id .. ':' .. subject
  if receiver == source.id or not wants_notifications_from(receiver, source.id) then return ms, seq, n end
  local next_ms, next_seq, next_n = following_position(ms, seq, n)
  local id = make_id(next_ms, next_seq)
  if redis.call('ZADD', KEY.notices .. receiver, 'NX', id, name) == 0 then return ms, seq, n end
  append_entry('notification', 'users:' .. receiver, '{"wire":{"notification":'
    .. notification_json(id, kind, source, more, next_ms, 'false') .. '}}', next_ms, next_seq, next_n)
  redis.call('ZREMRANGEBYRANK', KEY.notices .. receiver, 0, -(TIMELINE_MAX + 1))
  return next_ms, next_seq, next_n
end

-- Removes a notification whose cause was undone.
local function withdraw_notification(receiver, kind, source_id, subject)
  redis.call('ZREM', KEY.notices .. receiver, kind .. ':' .. source_id .. ':' .. subject)
end

-- The source and the kind of a kept notification, and its subject as the receiver may see it now. nil if the subject is
-- deleted or hidden, or if the receiver wants no notifications from the source.
local function visible_notification(receiver, name)
  local kind, source, subject = name:match('^(%l+):(%d+):(.*)$')
  if not wants_notifications_from(receiver, source) then return nil end
  if subject == '' then return source, kind, '' end
  local comment = kind == 'comment' and subject or subject:match('^c(%d+)$')
  local more = comment and comment_subject_json(receiver, comment)
  if not comment then more = status_subject_json(receiver, subject) end
  if more then return source, kind, more end
end

local function get_read_mark(receiver)
  return redis.call('HGET', KEY.user .. receiver, 'notices_read') or '0'
end

-- How many notifications are above the mark: of the newest MAX_EXACT_UNREAD those that would be shown, of the others
-- all. To check a thousand would block Redis for milliseconds.
local MAX_EXACT_UNREAD = 100

local function count_unread(receiver, mark)
  local key = KEY.notices .. receiver
  local names = redis.call('ZRANGE', key, '+inf', '(' .. mark, 'BYSCORE', 'REV', 'LIMIT', 0, MAX_EXACT_UNREAD)
  local shown = 0
  for _, name in ipairs(names) do
    if visible_notification(receiver, name) then shown = shown + 1 end
  end
  if #names < MAX_EXACT_UNREAD then return shown end
  return shown + redis.call('ZCOUNT', key, '(' .. mark, '+inf') - MAX_EXACT_UNREAD
end
