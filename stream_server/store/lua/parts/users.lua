-- Users as scripts see them. `person` is memoized nowhere: its counters change within a step.

-- A user with the counters as numbers, or nil.
local function find_user(uid)
  local kept = redis.call('HMGET', KEY.user .. uid, 'login', 'card', 'followers', 'following', 'posts', 'signup',
    'protected', 'suspended')
  if not kept[1] then
    return nil
  end
  return {id = uid, login = kept[1], card = kept[2], followers = tonumber(kept[3]), following = tonumber(kept[4]),
    posts = tonumber(kept[5]), signup = tonumber(kept[6]), protected = kept[7] == '1', suspended = kept[8] == '1'}
end

-- The same bytes as store/user_json.py makes.
local function user_json(who)
  return '{"id":"' .. who.id .. '","login":"' .. who.login .. '",' .. who.card
    .. format(',"followers":%d,"following":%d,"posts":%d', who.followers, who.following, who.posts)
    .. ',"signup":"' .. to_iso8601(who.signup) .. '"}'
end

-- Whether what a user does is for approved followers, at this moment.
local function is_protected(uid)
  return redis.call('HGET', KEY.user .. uid, 'protected') == '1'
end

-- Who writes, or nothing and the refusal: a token outlives neither its user nor the user's good standing.
local function find_active_user(uid)
  local who = find_user(uid)
  if not who then
    return nil, refuse('NOT_FOUND user')
  end
  if who.suspended then
    return nil, refuse('SUSPENDED user')
  end
  return who
end

-- The wire of an event between two persons.
local function pair_body(source, target)
  return '{"wire":{"source":' .. user_json(source) .. ',"target":' .. user_json(target) .. '}}'
end
