-- Likes, favorites and comments.

-- A status to which this user may react. The user must see it, and must be a member if it stands in a group, even if it
-- is the user's own.
local function require_reactable_status(uid, id)
  local row = find_visible_status(uid, id) or refuse('NOT_FOUND status')
  if row.group ~= '' and not redis.call('ZSCORE', KEY.joined .. row.group, uid) then refuse('NOT_YOURS group') end
  return row
end

-- The audience of a user's reaction to a status.
local function reaction_audience(actor, row)
  if row.group ~= '' then return 'group:' .. row.group end
  local hidden_actor, hidden_author = is_protected(actor), is_protected(row.uid)
  if hidden_actor and hidden_author and actor ~= row.uid then return 'users:' .. actor .. ',' .. row.uid end
  return hidden_actor and 'followers:' .. actor or hidden_author and 'followers:' .. row.uid or PUBLIC
end

-- The body of a reaction's entry.
local function reaction_body(source, row)
  return '{"wire":{"source":' .. user_json(source) .. ',"status":' .. embedded_json(row) .. '}}'
end

-- Likes a status. A repeated like changes nothing and sends no notification. Reply: position or `unchanged`, and the
-- number of likes.
function write.like(uid, id)
  local actor, row = require_active_user(uid), require_reactable_status(uid, id)
  if redis.call('ZSCORE', KEY.likes .. id, uid) then return keep_reply('unchanged ' .. row.likes) end
  local ms, seq, n = next_position()
  with_counter_changed(row, 'likes', 1)
  local position, now = append_entry('like', reaction_audience(uid, row), reaction_body(actor, row), ms, seq, n)
  set_member(KEY.likes .. id, uid, now)
  set_member(KEY.liked .. uid, id, now)
  redis.call('HINCRBY', KEY.status .. id, 'likes', 1)
  local about = visible_status_json(row.uid, row, VISIBLE)
  if about then notify_one(actor, row.uid, 'like', id, ',"status":' .. about, ms, seq, n) end
  return keep_reply(position .. ' ' .. row.likes)
end

-- Removes a user's like, also if the status has been hidden from the user since. Without a like, nothing changes.
-- Reply: position or `unchanged`, and the number of likes.
function write.unlike(uid, id)
  local actor, row = require_active_user(uid), find_status(id)
  local liked = row and redis.call('ZSCORE', KEY.likes .. id, uid)
  if not liked and not find_visible_status(uid, id) then refuse('NOT_FOUND status') end
  if not liked then return keep_reply('unchanged ' .. row.likes) end
  with_counter_changed(row, 'likes', -1)
  local position, now = append_entry('unlike', reaction_audience(uid, row), reaction_body(actor, row), next_position())
  redis.call('ZREM', KEY.likes .. id, uid)
  redis.call('ZREM', KEY.liked .. uid, id)
  -- The time tells the expiry of statuses that an entry of the log shows this status.
  redis.call('HSET', KEY.status .. id, 'likes', row.likes, 'touched', now)
  withdraw_notification(row.uid, 'like', uid, id)
  return keep_reply(position .. ' ' .. row.likes)
end

-- Adds a status to a user's favorites. Favorites are private, so there is no log entry. Reply: `kept` or `unchanged`.
function deed.favorite(uid, id)
  if not find_visible_status(uid, id) then refuse('NOT_FOUND status') end
  local ms = next_position()
  local is_new = redis.call('ZADD', KEY.favorites .. uid, 'NX', to_text(ms), id) == 1
  return keep_reply(is_new and 'kept' or 'unchanged')
end

-- Removes a status from a user's favorites, also if the status is deleted or hidden. Reply: `dropped` or `unchanged`.
function deed.unfavorite(uid, id)
  local kept = redis.call('ZSCORE', KEY.favorites .. uid, id)
  if not kept and not find_visible_status(uid, id) then refuse('NOT_FOUND status') end
  if not kept then return keep_reply('unchanged') end
  -- This ZADD changes nothing, but a full Redis refuses it before it removes the favorite without keeping the reply.
  redis.call('ZADD', KEY.favorites .. uid, 'XX', kept, id)
  redis.call('ZREM', KEY.favorites .. uid, id)
  return keep_reply('dropped')
end

-- Adds a user's comment to a status, and notifies the status's author and the mentioned users. `message_json` is the message as
-- JSON. From REST on there is what resolve_mentions reads. Reply: position.
function write.comment_create(uid, status, message_json, ...) --> json
  local actor, row = require_active_user(uid), require_reactable_status(uid, status)
  local entities, mentioned = resolve_mentions(uid)
  local ms, seq, n = next_position()
  local id = make_id(ms, seq)
  local json = '{"id":"' .. id .. '","uid":"' .. uid .. '","login":"' .. actor.login .. '","status":"' .. status
    .. '","message":' .. message_json .. ',"posted":"' .. to_iso8601(ms) .. '","entities":' .. entities .. '}'
  with_counter_changed(row, 'comments', 1)
  local body = '{"wire":{"comment":' .. json .. ',"status":' .. embedded_json(row) .. '}}'
  local audience = reaction_audience(uid, row)
  local position = append_entry('comment', audience, body, ms, seq, n)
  redis.call('HSET', KEY.comment .. id, 'uid', uid, 'status', status, 'json', json, 'mentioned',
    table.concat(mentioned, ' '), 'audience', audience)
  redis.call('ZADD', KEY.comments .. status, id, id)
  redis.call('HINCRBY', KEY.status .. status, 'comments', 1)

  -- Each user is notified once, if the user may see the comment. The status is included even if the receiver mutes its
  -- author, because the notification is about the commenter.
  local receivers = {}
  local function add_if_visible(other, kind, subject)
    local about = status_visibility(other, uid, row.group, actor) == VISIBLE and visible_status_json(other, row, ON_REQUEST)
    if not about then return end
    about = ',"status":' .. about .. ',"comment":' .. json
    receivers[#receivers + 1] = {uid = other, kind = kind, subject = subject, about = about}
  end
  add_if_visible(row.uid, 'comment', id)
  for _, other in ipairs(mentioned) do
    if other ~= row.uid then add_if_visible(other, 'mention', 'c' .. id) end
  end
  notify(actor, receivers, ms, seq, n)
  return keep_reply(position, json)
end

-- Deletes a comment on the status `row`. The log entry goes to the audience of the comment's own entry, even if a user has
-- become protected since then. If a user was unprotected at some time since, it goes to the public (removal_audience).
-- Returns the position.
local function remove_comment(id, row, ms, seq, n)
  local kept = redis.call('HMGET', KEY.comment .. id, 'uid', 'json', 'mentioned', 'audience')
  local author = kept[1]
  with_counter_changed(row, 'comments', -1)
  local audience = removal_audience(kept[4], id, author, row.uid)
  local body = '{"wire":{"comment":{"id":"' .. id .. '","uid":"' .. author .. '","status":"' .. row.id
    .. '","deleted":true},"status":' .. embedded_json(row) .. '},"facts":{"comment":' .. kept[2]
    .. open_times_fact(audience, author, row.uid, id) .. '}}'
  local position, now = append_entry('uncomment', audience, body, ms, seq, n)
  redis.call('DEL', KEY.comment .. id)
  redis.call('ZREM', KEY.comments .. row.id, id)
  -- The time tells the expiry of statuses that an entry of the log shows this status.
  redis.call('HSET', KEY.status .. row.id, 'comments', row.comments, 'touched', now)
  withdraw_notification(row.uid, 'comment', author, id)
  for other in (kept[3] or ''):gmatch('%S+') do
    withdraw_notification(other, 'mention', author, 'c' .. id)
  end
  return position
end

-- Deletes a comment. The user must have written the comment or the status. Reply: position.
function deed.comment_delete(uid, id)
  local kept = redis.call('HMGET', KEY.comment .. id, 'uid', 'status')
  local author, row = kept[1], kept[1] and find_status(kept[2])
  if not row then refuse('NOT_FOUND comment') end
  if author ~= uid then -- others see a comment if they see its status and its commenter
    local is_seen = visible_status_json(uid, row, ON_REQUEST) and status_visibility(uid, author, row.group) ~= HIDDEN
    if not is_seen then refuse('NOT_FOUND comment') end
    if row.uid ~= uid then refuse('NOT_YOURS comment') end
  end
  return keep_reply(remove_comment(id, row, next_position()))
end
