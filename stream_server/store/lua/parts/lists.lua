-- Lists of people. Needs the parts people and jobs.

-- A list by its id if this user may change it; or nothing and the refusal, which tells of no private one.
local function own_list(uid, list, param)
  local kept = redis.call('HMGET', KEY.list .. list, 'uid', 'private', 'card', 'members', 'created')
  if not kept[1] or (kept[1] ~= uid and kept[2] == '1') then
    return nil, refuse('NOT_FOUND list ' .. param)
  end
  if kept[1] ~= uid then
    return nil, refuse('NOT_YOURS list ' .. param)
  end
  return {id = list, uid = kept[1], private = kept[2] == '1', card = kept[3], members = tonumber(kept[4]),
    created = tonumber(kept[5])}
end

-- `card` holds the members name, description and private, encoded.
local function list_json(list)
  return '{"id":"' .. list.id .. '","uid":"' .. list.uid .. '",' .. list.card .. format(',"members":%d', list.members)
    .. ',"created":"' .. iso(list.created) .. '"}'
end

local function list_body(list, user)
  return '{"wire":{"list":' .. list_json(list) .. ',"user":' .. person_json(user) .. '}}'
end

-- Who hears of a member's coming and going: the owner, and the member unless the list is the owner's secret.
local function list_audience(list, user)
  local both = not list.private and user.id ~= list.uid
  return 'users:' .. list.uid .. (both and ',' .. user.id or '')
end

-- The user is on the list from now on; gives the position and the fence of the merge, or nil if that was so before.
local function enlist(list, user, ms, seq, n)
  if redis.call('ZSCORE', KEY.members .. list.id, user.id) then
    return nil
  end
  list.members = list.members + 1
  local position = append('list_add', list_audience(list, user), list_body(list, user), ms, seq, n)
  redis.call('ZADD', KEY.members .. list.id, text(ms), user.id)
  redis.call('ZADD', KEY.listed .. user.id, text(ms), list.id)
  redis.call('HINCRBY', KEY.list .. list.id, 'members', 1)
  local job = 'list-' .. list.id .. '-' .. user.id
  return position, leave(job, 'merge', ms, 'owner', list.id, 'author', user.id)
end

-- The user is off the list; as `enlist`. `left` counts it: a post on its way looks again who still wants it.
local function delist(list, user, ms, seq, n)
  if not redis.call('ZSCORE', KEY.members .. list.id, user.id) then
    return nil
  end
  list.members = list.members - 1
  local position = append('list_remove', list_audience(list, user), list_body(list, user), ms, seq, n)
  redis.call('ZREM', KEY.members .. list.id, user.id)
  redis.call('ZREM', KEY.listed .. user.id, list.id)
  redis.call('HINCRBY', KEY.list .. list.id, 'members', -1)
  redis.call('HINCRBY', KEY.user .. user.id, 'left', 1)
  local job = 'list-' .. list.id .. '-' .. user.id
  return position, leave(job, 'remove', ms, 'owner', list.id, 'author', user.id)
end
