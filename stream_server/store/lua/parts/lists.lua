-- Lists of people. Needs the parts users and visibility; whoever hash_changes one needs jobs too.
local MAX_LISTS, MAX_LIST_MEMBERS = 1000, 5000

-- A list by its id, as texts; or nil. Its words are kept twice, as they are and encoded for its JSON.
local function find_list(id)
  local kept = redis.call('HMGET', KEY.list .. id, 'uid', 'private', 'name_json', 'description_json', 'members',
    'created')
  if not kept[1] then
    return nil
  end
  return {id = id, uid = kept[1], private = kept[2], name_json = kept[3], description_json = kept[4],
    members = tonumber(kept[5]), created = tonumber(kept[6])}
end

-- A list if this viewer may see it, or nil: a private one is its owner's alone.
local function find_visible_list(viewer, id)
  local list = find_list(id)
  if list and (list.uid == viewer or (list.private ~= '1' and can_see_user(viewer, list.uid))) then
    return list
  end
  return nil
end

-- A list by its id if this user may change it; or nothing and the refusal, which tells of none that may not be seen.
-- With a user who is to be put on it: refused where there is no room left.
local function find_owned_list(uid, id, param, joining)
  local list = find_visible_list(uid, id)
  if not list then
    return nil, refuse('NOT_FOUND list ' .. param)
  elseif list.uid ~= uid then
    return nil, refuse('NOT_YOURS list ' .. param)
  end
  local key = KEY.members .. id
  if joining and redis.call('ZCARD', key) >= MAX_LIST_MEMBERS and not redis.call('ZSCORE', key, joining) then
    return nil, refuse('TOO_MANY members ' .. param)
  end
  return list
end

local function list_json(list)
  return '{"id":"' .. list.id .. '","uid":"' .. list.uid .. '","name":' .. list.name_json .. ',"description":'
    .. list.description_json .. ',"private":' .. (list.private == '1' and 'true' or 'false')
    .. format(',"members":%d', list.members) .. ',"created":"' .. to_iso8601(list.created) .. '"}'
end

local function list_body(list, user)
  return '{"wire":{"list":' .. list_json(list) .. ',"user":' .. user_json(user) .. '}}'
end

-- Who hears of a member's coming and going: the owner, and the member unless the list is none that they may see.
local function list_audience(list, user)
  local both = list.private ~= '1' and user.id ~= list.uid and can_contact(list.uid, user.id)
  return 'users:' .. list.uid .. (both and ',' .. user.id or '')
end

-- The user is on the list from now on; gives the position and the fence of the merge, or nil if that was so before.
local function add_list_member(list, user, ms, seq, n)
  if redis.call('ZSCORE', KEY.members .. list.id, user.id) then
    return nil
  end
  list.members = list.members + 1
  local position = append_entry('list_add', list_audience(list, user), list_body(list, user), ms, seq, n)
  redis.call('ZADD', KEY.members .. list.id, to_text(ms), user.id)
  redis.call('ZADD', KEY.listed .. user.id, to_text(ms), list.id)
  redis.call('HINCRBY', KEY.list .. list.id, 'members', 1)
  local job = 'list-' .. list.id .. '-' .. user.id
  return position, enqueue_job(job, 'merge', ms, 'owner', list.id, 'author', user.id)
end

-- The user is off the list; as `enlist`. `left` counts it: a post on its way looks again who still wants it.
local function remove_list_member(list, user, ms, seq, n)
  if not redis.call('ZSCORE', KEY.members .. list.id, user.id) then
    return nil
  end
  list.members = list.members - 1
  local position = append_entry('list_remove', list_audience(list, user), list_body(list, user), ms, seq, n)
  redis.call('ZREM', KEY.members .. list.id, user.id)
  redis.call('ZREM', KEY.listed .. user.id, list.id)
  redis.call('HINCRBY', KEY.list .. list.id, 'members', -1)
  redis.call('HINCRBY', KEY.user .. user.id, 'left', 1)
  local job = 'list-' .. list.id .. '-' .. user.id
  return position, enqueue_job(job, 'remove', ms, 'owner', list.id, 'author', user.id)
end

-- A step that may have made an entry also puts a user on a list, or takes them off: `change` is `enlist` or `delist`.
-- Gives the position of the step, which is that of its first entry, and the fence of the list's job, '' for none.
local function change_list_too(change, list, user, position)
  local changed, fence = change(list, user, next_position())
  return position == 'unchanged' and changed or position, fence or ''
end
