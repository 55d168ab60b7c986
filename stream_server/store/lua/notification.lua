-- Notifications. Each user has a sorted set of them, KEY.notices, whose members are `<kind>:<source>:<subject>` and whose
-- scores are ids. The source is the id of the user who caused the notification. The subject is the id of a status, of a
-- comment (`c<id>` if the comment mentions the receiver), or empty. A member has no text and no JSON: so a repetition is
-- found, an undo is one ZREM, and what the receiver may see is decided when the notification is read.

-- Most users whom one text mentions. The mentions of further users get no id, and notify nobody.
local MAX_MENTIONED = 50

-- The member of KEY.notices.
local function notice_name(kind, source_id, subject)
  return kind .. ':' .. source_id .. ':' .. subject
end

-- Notifies users of what the source (a user's row) did, by one entry for all who get the same notification. So the text of
-- a status stands once on the log for all users whom it mentions: with an entry for each of them, a comment of 806 bytes
-- made 985 KB of log. `receivers` is a list of {uid, kind, subject, about}: `about` has the subject (status, comment) as
-- JSON members, each after a comma, or ''. It differs only in the original of the status, which some do not see. The caller
-- has checked that each receiver may see it, and wants notifications of the source: who sees a text of the source as
-- VISIBLE does. It has also checked that no receiver has this notification: nobody has one of a new text. The source itself
-- is left out. The entry has one id, so the notifications have one.
local function notify(source, receivers, ms, seq, n)
  local next_ms, next_seq, next_n = following_position(ms, seq, n)
  local id, told, ids, later = make_id(next_ms, next_seq), {}, {}, {}
  for _, one in ipairs(receivers) do
    if one.uid ~= source.id then
      local is_same = not told[1] or (one.kind == told[1].kind and one.about == told[1].about)
      local among = is_same and told or later
      among[#among + 1] = one
    end
  end
  if #told == 0 then return end
  for at, one in ipairs(told) do
    ids[at] = one.uid
    redis.call('ZADD', KEY.notices .. one.uid, id, notice_name(one.kind, source.id, one.subject))
    redis.call('ZREMRANGEBYRANK', KEY.notices .. one.uid, 0, -(TIMELINE_MAX + 1))
  end
  append_entry('notification', 'users:' .. table.concat(ids, ','), '{"wire":{"notification":{"id":"' .. id .. '","kind":"'
    .. told[1].kind .. '","source":' .. user_json(source) .. told[1].about .. ',"posted":"' .. to_iso8601(next_ms)
    .. '","read":false}}}', next_ms, next_seq, next_n)
  notify(source, later, next_ms, next_seq, next_n)
end

-- Notifies one user of what the source did, unless the user does not want notifications of the source, or has this one
-- already. See notify.
local function notify_one(source, uid, kind, subject, about, ms, seq, n)
  local is_known = redis.call('ZSCORE', KEY.notices .. uid, notice_name(kind, source.id, subject))
  if not is_known and wants_notifications_from(uid, source) then
    notify(source, {{uid = uid, kind = kind, subject = subject, about = about}}, ms, seq, n)
  end
end

-- Removes a notification whose cause was undone.
local function withdraw_notification(receiver, kind, source_id, subject)
  redis.call('ZREM', KEY.notices .. receiver, notice_name(kind, source_id, subject))
end

-- Finds the users whom a text mentions. A user whom the author may not see is not found, because the id would reveal
-- them, and so is none after MAX_MENTIONED others. ARGV[REST] is the number of mentions. Behind it stand their logins in lower
-- case, then the JSON of the text's entities in one piece more than there are mentions. Returns the JSON with the ids
-- between the pieces, and the ids without repetition.
local function resolve_mentions(author)
  local most = tonumber(ARGV[REST])
  if most == 0 then return ARGV[REST + 1], {} end
  local pieces, ids, known = {ARGV[REST + most + 1]}, {}, {}
  for i = 1, most do
    local id = redis.call('HGET', KEY.logins, ARGV[REST + i])
    if id and not known[id] then
      if #ids < MAX_MENTIONED and can_see_user(author, id) then
        known[id], ids[#ids + 1] = true, id
      else
        id = nil
      end
    end
    pieces[i + 1] = (id and ',"id":"' .. id .. '"' or '') .. ARGV[REST + most + 1 + i]
  end
  return table.concat(pieces), ids
end

-- Marks a user's notifications up to an id as read. An id below the mark changes nothing. There is no log entry. Reply:
-- `marked` or `unchanged`.
function deed.notifications_mark_read(uid, id)
  local made, number = redis.call('HMGET', KEY.meta, 'ms', 'seq'), tonumber(id)
  -- A mark in the future would count notifications as read that do not exist yet.
  if not made[1] or number > tonumber(make_id(tonumber(made[1]), tonumber(made[2]))) then
    refuse('NOT_FOUND notification id')
  end
  if number <= tonumber(redis.call('HGET', KEY.user .. uid, 'notices_read') or '0') then return keep_reply('unchanged') end
  redis.call('HSET', KEY.user .. uid, 'notices_read', to_text(number))
  return keep_reply('marked')
end
