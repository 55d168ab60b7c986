-- Notifications: a sorted set of `<kind>:<source>:<subject>`, so a repetition is found and an undo can remove it. The
-- subject is the id of a status, of a comment (`c<id>` if the comment mentions the receiver), or empty.

-- Notifies a receiver of what the source (a row) did. `more` is the subject (status, comment) as JSON members, each after
-- a comma, or ''. Returns the position of the step's last entry, which advances if a notification was made. The caller has
-- checked that the receiver may see it.
local function notify(receiver, kind, source, subject, more, ms, seq, n)
  local name = kind .. ':' .. source.id .. ':' .. subject
  if receiver == source.id or not wants_notifications_from(receiver, source) then return ms, seq, n end
  local next_ms, next_seq, next_n = following_position(ms, seq, n)
  local id = make_id(next_ms, next_seq)
  if redis.call('ZADD', KEY.notices .. receiver, 'NX', id, name) == 0 then return ms, seq, n end
  append_entry('notification', 'users:' .. receiver, '{"wire":{"notification":{"id":"' .. id .. '","kind":"' .. kind
    .. '","source":' .. user_json(source) .. more .. ',"posted":"' .. to_iso8601(next_ms) .. '","read":false}}}',
    next_ms, next_seq, next_n)
  redis.call('ZREMRANGEBYRANK', KEY.notices .. receiver, 0, -(TIMELINE_MAX + 1))
  return next_ms, next_seq, next_n
end

-- Removes a notification whose cause was undone.
local function withdraw_notification(receiver, kind, source_id, subject)
  redis.call('ZREM', KEY.notices .. receiver, kind .. ':' .. source_id .. ':' .. subject)
end

-- Finds the users whom a text mentions. A user whom the author may not see is not found, because the id would reveal
-- them. ARGV[at] is the number of mentions. Behind it stand their logins in lower case, then the JSON of the text's
-- entities in one piece more than there are mentions. Returns the JSON with the ids between the pieces, and the ids
-- without repetition.
local function resolve_mentions(author, at)
  local most = tonumber(ARGV[at])
  if most == 0 then return ARGV[at + 1], {} end
  local pieces, ids, known = {ARGV[at + most + 1]}, {}, {}
  for i = 1, most do
    local id = redis.call('HGET', KEY.logins, ARGV[at + i])
    if id and not can_see_user(author, id) then id = nil end
    if id and not known[id] then
      known[id] = true
      ids[#ids + 1] = id
    end
    pieces[i + 1] = (id and ',"id":"' .. id .. '"' or '') .. ARGV[at + most + 1 + i]
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
