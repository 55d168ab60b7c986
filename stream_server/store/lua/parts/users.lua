-- Users as scripts see them. find_user does not cache, because counters change within a step.

-- A user with the counters as numbers, or nil.
local function find_user(uid)
  local kept = redis.call('HMGET', KEY.user .. uid, 'login', 'card', 'followers', 'following', 'posts', 'signup',
    'protected', 'suspended')
  if not kept[1] then return nil end
  return {id = uid, login = kept[1], card = kept[2], followers = tonumber(kept[3]), following = tonumber(kept[4]),
    posts = tonumber(kept[5]), signup = kept[6], protected = kept[7] == '1', suspended = kept[8] == '1'}
end

-- The same bytes as UserRow.public_json in store/social/users.py.
local function user_json(who)
  return '{"id":"' .. who.id .. '","login":"' .. who.login .. '",' .. who.card
    .. format(',"followers":%d,"following":%d,"posts":%d', who.followers, who.following, who.posts)
    .. ',"signup":"' .. who.signup .. '"}'
end

-- A user's JSON with `since`, the time at which the user entered a set.
local function user_since_json(uid, ms)
  return user_json(find_user(uid)):sub(1, -2) .. ',"since":"' .. to_iso8601(tonumber(ms)) .. '"}'
end

-- Whether only approved followers see what this user writes now.
local function is_protected(uid)
  return redis.call('HGET', KEY.user .. uid, 'protected') == '1'
end

-- The audience of the entry that removes a status or comment. It is that of the entry that it removes, or everybody if
-- everybody could read what goes, because a protection has ended since.
local function removal_audience(audience, id)
  local to, owner, other = audience:match('^(%a+):(%d+),?(%d*)$')
  if to == 'users' then return (is_protected(owner) or is_protected(other)) and audience or PUBLIC end
  if to ~= 'followers' then return audience end
  local kept = redis.call('HMGET', KEY.user .. owner, 'protected', 'opened')
  local has_opened = kept[1] ~= '1' or (kept[2] and tonumber(kept[2]) > tonumber(id))
  return has_opened and PUBLIC or audience
end

-- How many ended follows and memberships of a user are known.
local MAX_ENDED = 200

-- Forgets what ended first of a user's follows and memberships.
local function trim_ended(uid)
  redis.call('ZREMRANGEBYRANK', KEY.ended .. uid, 0, -(MAX_ENDED + 1))
end

-- Ends a user's relation with a user or a group, which `relation` has from `began` until now. The times are kept, because
-- deletes of what the user could read meanwhile may still come.
local function end_relation_with(relation, uid, other, began, now)
  redis.call('ZREM', relation .. uid, other)
  redis.call('ZADD', KEY.ended .. uid, now, other .. '-' .. began)
  trim_ended(uid)
end

-- The user who writes; or nil and the refusal. A token does not outlive its user or the user's good standing.
local function find_active_user(uid)
  local who = find_user(uid)
  if not who then return nil, refuse('NOT_FOUND user') end
  if who.suspended then return nil, refuse('SUSPENDED user') end
  return who
end

-- The body of an entry about two users.
local function pair_body(source, target)
  return '{"wire":{"source":' .. user_json(source) .. ',"target":' .. user_json(target) .. '}}'
end
