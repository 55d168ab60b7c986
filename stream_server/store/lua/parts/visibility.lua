-- The visibility rules. VISIBILITY_TABLE holds the answers of stream_server/events/visibility.py, one digit for each
-- set of facts. The rules stand only there.
local OWN, FOLLOWER, BLOCKED, MUTED, SUSPENDED, PROTECTED, CLOSED, MEMBER, DIRECT, PARTY =
  1, 2, 4, 8, 16, 32, 64, 128, 256, 512
local HIDDEN, ON_REQUEST, VISIBLE = 0, 1, 2
local known_facts, known_avoids, known_groups, known_standing = {}, {}, {}, {}

local function visibility_of_bits(bits)
  return VISIBILITY_TABLE:byte(bits + 1) - 48
end

-- Whether the viewer blocks or mutes anybody or is blocked. Most viewers do not, so it is read once.
local function avoids_anybody(viewer)
  if known_avoids[viewer] == nil then
    known_avoids[viewer] = redis.call('EXISTS', KEY.blocks .. viewer, KEY.blockers .. viewer, KEY.mutes .. viewer) > 0
  end
  return known_avoids[viewer]
end

-- Adds `bit` to the facts of each author who is a member of the sorted set.
local function add_bit_of_members(known, key, authors, bit)
  for at, score in ipairs(redis.call('ZMSCORE', key, unpack(authors))) do
    if score then known[authors[at]] = known[authors[at]] + bit end
  end
end

-- The authors whose facts are not known yet, each once.
local function unknown_authors(viewer, known, authors)
  local found = {}
  for _, author in ipairs(authors) do
    if not known[author] then
      found[#found + 1], known[author] = author, author == viewer and OWN or 0
    end
  end
  return found
end

-- Adds the facts of authors that hold for every viewer. Returns the protected ones. A script that knows an author sets
-- `known_standing`.
local function load_standing(known, authors)
  if #authors == 1 then
    local author = authors[1]
    local standing = known_standing[author] or redis.call('HMGET', KEY.user .. author, 'protected', 'suspended')
    if standing[1] == '1' then known[author] = known[author] + PROTECTED end
    if standing[2] == '1' then known[author] = known[author] + SUSPENDED end
    return standing[1] == '1' and authors or {}
  end
  local protected = {}
  for at, is_member in ipairs(redis.call('SMISMEMBER', KEY.protected, unpack(authors))) do
    if is_member == 1 then
      protected[#protected + 1], known[authors[at]] = authors[at], known[authors[at]] + PROTECTED
    end
  end
  add_bit_of_members(known, KEY.suspended, authors, SUSPENDED)
  return protected
end

-- Reads the facts between a viewer and authors, of all authors at once. They are cached for the step, so ask before
-- changing them. Following is read only for protected authors, because it admits to nobody else.
local function load_relation_facts(viewer, authors)
  local known = known_facts[viewer] or {}
  known_facts[viewer] = known
  authors = unknown_authors(viewer, known, authors)
  if #authors == 0 then return end
  local protected = load_standing(known, authors)
  if #protected > 0 then add_bit_of_members(known, KEY.following .. viewer, protected, FOLLOWER) end
  if not avoids_anybody(viewer) then return end
  local blockers = redis.call('ZMSCORE', KEY.blockers .. viewer, unpack(authors))
  for at, blocks in ipairs(redis.call('ZMSCORE', KEY.blocks .. viewer, unpack(authors))) do
    if blocks or blockers[at] then known[authors[at]] = known[authors[at]] + BLOCKED end
  end
  add_bit_of_members(known, KEY.mutes .. viewer, authors, MUTED)
end

local function relation_facts(viewer, author)
  local known = known_facts[viewer]
  if not known or not known[author] then
    load_relation_facts(viewer, {author})
    known = known_facts[viewer]
  end
  return known[author]
end

-- The facts of a group, cached for the step. A deleted group is closed to all.
local function group_facts(viewer, group)
  local name = viewer .. ' ' .. group
  if not known_groups[name] then
    local kind = redis.call('HGET', KEY.group .. group, 'kind')
    local member = redis.call('ZSCORE', KEY.joined .. group, viewer)
    known_groups[name] = ((not kind or kind == 'private') and CLOSED or 0) + (member and MEMBER or 0)
  end
  return known_groups[name]
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
