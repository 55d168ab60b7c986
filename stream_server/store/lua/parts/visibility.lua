-- The visibility rules. VISIBILITY_TABLE holds the answers of stream_server/events/visibility.py, one digit for each
-- set of facts. The rules stand only there.
local OWN, FOLLOWER, BLOCKED, MUTED, SUSPENDED, PROTECTED, CLOSED, MEMBER, DIRECT, PARTY =
  1, 2, 4, 8, 16, 32, 64, 128, 256, 512
local HIDDEN, ON_REQUEST, VISIBLE = 0, 1, 2
local known_facts = {}

local function visibility_of_bits(bits)
  return VISIBILITY_TABLE:byte(bits + 1) - 48
end

-- The facts between a viewer and an author. They are cached for the step, so ask before changing them.
local function relation_facts(viewer, author)
  local name = viewer .. ' ' .. author
  local bits = known_facts[name]
  if bits then return bits end
  bits = 0
  local standing = redis.call('HMGET', KEY.user .. author, 'suspended', 'protected')
  if standing[1] == '1' then bits = bits + SUSPENDED end
  if standing[2] == '1' then bits = bits + PROTECTED end
  if viewer == author then
    bits = bits + OWN
  else
    if redis.call('ZSCORE', KEY.following .. viewer, author) then bits = bits + FOLLOWER end
    if redis.call('ZSCORE', KEY.blocks .. viewer, author) or redis.call('ZSCORE', KEY.blockers .. viewer, author) then
      bits = bits + BLOCKED
    end
    if redis.call('ZSCORE', KEY.mutes .. viewer, author) then bits = bits + MUTED end
  end
  known_facts[name] = bits
  return bits
end

-- The facts of a group ('' for none). A deleted group is closed to all.
local function group_facts(viewer, group)
  if group == '' then return 0 end
  local kind = redis.call('HGET', KEY.group .. group, 'kind')
  local member = redis.call('ZSCORE', KEY.joined .. group, viewer)
  return ((not kind or kind == 'private') and CLOSED or 0) + (member and MEMBER or 0)
end

-- The visibility of an author for a viewer in general, and of a status in a group ('' for none).
local function author_visibility(viewer, author)
  return visibility_of_bits(relation_facts(viewer, author))
end

local function status_visibility(viewer, author, group)
  return visibility_of_bits(relation_facts(viewer, author) + group_facts(viewer, group))
end

-- Whether a viewer may see a user's card: unless the user blocks the viewer or is suspended.
local function can_see_user(viewer, uid)
  local standing = redis.call('HMGET', KEY.user .. uid, 'id', 'suspended')
  if not standing[1] or standing[2] == '1' then return false end
  return not redis.call('ZSCORE', KEY.blockers .. viewer, uid)
end

-- The refusal if the viewer may not see one of two users, or if they are the same; or nil.
local function refuse_unless_two_visible(viewer, one, other)
  if not can_see_user(viewer, one) then return refuse('NOT_FOUND user id') end
  if one == other then return refuse('ONESELF other') end
  if not can_see_user(viewer, other) then return refuse('NOT_FOUND user other') end
end

-- Whether a user may contact another: can see them, and does not block them.
local function can_contact(uid, other)
  return can_see_user(uid, other) and not redis.call('ZSCORE', KEY.blocks .. uid, other)
end

-- Whether a viewer wants notifications of what another user does: not blocked, muted or suspended.
local function wants_notifications_from(viewer, source)
  local bits = relation_facts(viewer, source)
  return visibility_of_bits(floor(bits / PROTECTED) % 2 == 1 and bits - PROTECTED or bits) == VISIBLE
end
