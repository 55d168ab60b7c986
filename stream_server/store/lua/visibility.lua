-- Who sees what, for writes. The rules stand in stream_server/events/visibility.py. VISIBILITY_TABLE holds its answers, one
-- digit for each set of facts. The names of facts and answers are those of VisibilityFact and Visibility.

local function visibility_of_bits(bits)
  return VISIBILITY_TABLE:byte(bits + 1) - 48
end

-- The facts about a viewer and an author, as bits. Whether the viewer follows the author is read only for a protected author,
-- because a follow gives no access to others. A script that has the author's row (find_user) already passes it as
-- `author_row`. Call this before the script changes one of the relations.
local function relation_facts(viewer, author, author_row)
  local bits = viewer == author and AUTHOR or 0
  if not author_row then
    local kept = redis.call('HMGET', KEY.user .. author, 'protected', 'suspended')
    author_row = {protected = kept[1] == '1', suspended = kept[2] == '1'}
  end
  if author_row.suspended then bits = bits + SUSPENDED end
  if author_row.protected then
    bits = bits + PROTECTED
    if redis.call('ZSCORE', KEY.following .. viewer, author) then bits = bits + FOLLOWER end
  end
  -- Most viewers block and mute nobody and are blocked by nobody.
  if redis.call('EXISTS', KEY.blocks .. viewer, KEY.blockers .. viewer, KEY.mutes .. viewer) == 0 then return bits end
  if redis.call('ZSCORE', KEY.blocks .. viewer, author) or redis.call('ZSCORE', KEY.blockers .. viewer, author) then
    bits = bits + BLOCKED
  end
  if redis.call('ZSCORE', KEY.mutes .. viewer, author) then bits = bits + MUTED end
  return bits
end

-- The visibility, for a viewer, of a text by an author in a group ('' outside of groups): HIDDEN, ON_REQUEST or VISIBLE.
-- `author_row` is as in relation_facts. A deleted group is closed to all.
local function status_visibility(viewer, author, group, author_row)
  local bits = relation_facts(viewer, author, author_row)
  if group == '' then return visibility_of_bits(bits) end
  local kind = redis.call('HGET', KEY.group .. group, 'kind')
  bits = bits + ((not kind or kind == 'private') and PRIVATE_GROUP or 0)
  return visibility_of_bits(redis.call('ZSCORE', KEY.joined .. group, viewer) and bits + GROUP_MEMBER or bits)
end

-- Whether a viewer may see a user's card: unless the user blocks the viewer or is suspended.
local function can_see_user(viewer, uid)
  local standing = redis.call('HMGET', KEY.user .. uid, 'id', 'suspended')
  if not standing[1] or standing[2] == '1' then return false end
  return not redis.call('ZSCORE', KEY.blockers .. viewer, uid)
end

-- Whether a user may contact another: can see them, and does not block them.
local function can_contact(uid, other)
  return can_see_user(uid, other) and not redis.call('ZSCORE', KEY.blocks .. uid, other)
end

-- Whether a viewer wants notifications of what the user `source` (a row) does: not blocked, muted or suspended.
local function wants_notifications_from(viewer, source)
  local bits = relation_facts(viewer, source.id, source)
  return visibility_of_bits(source.protected and bits - PROTECTED or bits) == VISIBLE
end
