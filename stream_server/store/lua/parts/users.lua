-- Users as scripts see them. find_user does not cache, because counters change within a step.

-- A user with the counters as numbers, or nil.
local function find_user(uid)
  local kept = redis.call('HMGET', KEY.user .. uid, 'login', 'card', 'followers', 'following', 'posts', 'signup',
    'protected', 'suspended')
  if not kept[1] then return nil end
  return {id = uid, login = kept[1], card = kept[2], followers = tonumber(kept[3]), following = tonumber(kept[4]),
    posts = tonumber(kept[5]), signup = tonumber(kept[6]), protected = kept[7] == '1', suspended = kept[8] == '1'}
end

-- The same bytes as UserRow.public_json in store/social/users.py. A script may ask again when the counters changed.
local function user_json(who)
  who.since = who.since or to_iso8601(who.signup)
  return '{"id":"' .. who.id .. '","login":"' .. who.login .. '",' .. who.card
    .. format(',"followers":%d,"following":%d,"posts":%d', who.followers, who.following, who.posts)
    .. ',"signup":"' .. who.since .. '"}'
end

-- A user's JSON with `since`, the time at which the user entered a set.
local function user_since_json(uid, ms)
  return user_json(find_user(uid)):sub(1, -2) .. ',"since":"' .. to_iso8601(tonumber(ms)) .. '"}'
end

-- Whether only approved followers see what this user writes now.
local function is_protected(uid)
  return redis.call('HGET', KEY.user .. uid, 'protected') == '1'
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
