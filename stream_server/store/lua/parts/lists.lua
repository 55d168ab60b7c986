local MAX_LISTS, MAX_LIST_MEMBERS = 100, 5000

-- A list by its id, as text, or nil. Its texts are kept twice: as they are, and encoded for its JSON.
local function find_list(id)
  local kept = redis.call('HMGET', KEY.list .. id, 'uid', 'private', 'name_json', 'description_json', 'members',
    'created')
  if not kept[1] then return nil end
  return {id = id, uid = kept[1], private = kept[2], name_json = kept[3], description_json = kept[4],
    members = tonumber(kept[5]), created = tonumber(kept[6])}
end

-- A list that this viewer may see, or nil. Only its owner sees a private list.
local function find_visible_list(viewer, id)
  local list = find_list(id)
  if list and (list.uid == viewer or (list.private ~= '1' and can_see_user(viewer, list.uid))) then
    return list
  end
  return nil
end

-- A list that this user may change; or nil and the refusal. A hidden list is refused like an unknown one. With a user
-- to be added (`joining`), refused if the list is full.
local function find_owned_list(uid, id, param, joining)
  local list = find_visible_list(uid, id)
  if not list then return nil, refuse('NOT_FOUND list ' .. param) end
  if list.uid ~= uid then return nil, refuse('NOT_YOURS list ' .. param) end
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

-- The audience of a change of members: the owner, and the member if they may see the list.
local function list_audience(list, user)
  local both = list.private ~= '1' and user.id ~= list.uid and can_contact(list.uid, user.id)
  return 'users:' .. list.uid .. (both and ',' .. user.id or '')
end

-- Adds the user to the list (`kind` is 'list_add') or removes the user ('list_remove'). Returns the position and the
-- fence of the timeline's job, or nil if nothing changes. `left` counts a removal, so that a status on its way to the
-- list is checked again.
local function change_list_member(kind, list, user, ms, seq, n)
  local joins = not redis.call('ZSCORE', KEY.members .. list.id, user.id)
  if joins ~= (kind == 'list_add') then return nil end
  local by = joins and 1 or -1
  list.members = list.members + by
  local position, now = append_entry(kind, list_audience(list, user), list_body(list, user), ms, seq, n)
  set_member(KEY.members .. list.id, user.id, joins and now)
  set_member(KEY.listed .. user.id, list.id, joins and now)
  redis.call('HINCRBY', KEY.list .. list.id, 'members', by)
  if not joins then
    redis.call('HINCRBY', KEY.user .. user.id, 'left', 1)
    restart_fan_outs({[user.id] = true})
  end
  local job, mode = 'list-' .. list.id .. '-' .. user.id, joins and 'merge' or 'remove'
  return position, enqueue_job(job, mode, ms, 'owner', list.id, 'author', user.id)
end

-- The same in a step that may have made another entry. Returns the position of the step's first entry, and the fence of
-- the list's job ('' for none).
local function change_list_too(kind, list, user, position)
  local changed, fence = change_list_member(kind, list, user, next_position())
  return position == 'unchanged' and changed or position, fence or ''
end
