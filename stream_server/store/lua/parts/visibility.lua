-- The visibility rules. VISIBILITY_TABLE holds the answers of stream_server/events/visibility.py, one digit for each
-- set of facts. The rules stand only there.
local OWN, FOLLOWER, BLOCKED, MUTED, SUSPENDED, PROTECTED, CLOSED, MEMBER, DIRECT, PARTY =
  1, 2, 4, 8, 16, 32, 64, 128, 256, 512
local HIDDEN, ON_REQUEST, VISIBLE = 0, 1, 2
local known_facts = {}

local function visibility_of_bits(bits)
  return VISIBILITY_TABLE:byte(bits + 1) - 48
end

-- Reads the facts between a viewer and authors. They are cached for the step, so ask before changing them. Most viewers
-- block and mute nobody and are blocked by nobody, so that is asked once. Following is read only for protected authors,
-- because it admits to nobody else.
local function load_relation_facts(viewer, authors)
  local known = known_facts[viewer] or {}
  known_facts[viewer] = known
  local blocks, blockers, mutes = KEY.blocks .. viewer, KEY.blockers .. viewer, KEY.mutes .. viewer
  local avoids = redis.call('EXISTS', blocks, blockers, mutes) > 0
  for _, author in ipairs(authors) do
    if not known[author] then
      local bits, standing = 0, redis.call('HMGET', KEY.user .. author, 'protected', 'suspended')
      if standing[1] == '1' then bits = bits + PROTECTED end
      if standing[2] == '1' then bits = bits + SUSPENDED end
      if viewer == author then
        bits = bits + OWN
      else
        if standing[1] == '1' and redis.call('ZSCORE', KEY.following .. viewer, author) then bits = bits + FOLLOWER end
        if avoids and (redis.call('ZSCORE', blocks, author) or redis.call('ZSCORE', blockers, author)) then
          bits = bits + BLOCKED
        end
        if avoids and redis.call('ZSCORE', mutes, author) then bits = bits + MUTED end
      end
      known[author] = bits
    end
  end
end

local function relation_facts(viewer, author)
  local known = known_facts[viewer]
  if not known or not known[author] then
    load_relation_facts(viewer, {author})
    known = known_facts[viewer]
  end
  return known[author]
end

-- The facts of a group. A deleted group is closed to all.
local function group_facts(viewer, group)
  local kind = redis.call('HGET', KEY.group .. group, 'kind')
  local member = redis.call('ZSCORE', KEY.joined .. group, viewer)
  return ((not kind or kind == 'private') and CLOSED or 0) + (member and MEMBER or 0)
end

-- The visibility of an author for a viewer in general, and of a status in a group ('' for none).
local function author_visibility(viewer, author)
  return visibility_of_bits(relation_facts(viewer, author))
end

local function status_visibility(viewer, author, group)
  local bits = relation_facts(viewer, author)
  return visibility_of_bits(group == '' and bits or bits + group_facts(viewer, group))
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
