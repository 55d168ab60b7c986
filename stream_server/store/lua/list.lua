-- Lists of users.
local MAX_LISTS = 100
local MAX_LIST_MEMBERS = 5000

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
    .. string.format(',"members":%d', list.members) .. ',"created":"' .. to_iso8601(list.created) .. '"}'
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
  local body = '{"wire":{"list":' .. list_json(list) .. ',"user":' .. user_json(user) .. '}}'
  local position, now = append_entry(kind, list_audience(list, user), body, ms, seq, n)
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

-- Creates a list; `private` is '1' or '0'. Reply: position; JSON of the list.
function deed.list_create(uid, private, name, description, name_json, description_json)
  if redis.call('ZCARD', KEY.lists .. uid) >= MAX_LISTS then return refuse('TOO_MANY lists') end
  local ms, seq, n = next_position()
  local id = make_id(ms, seq)
  local json = list_json({id = id, uid = uid, private = private, name_json = name_json,
    description_json = description_json, members = 0, created = ms})
  local position, now = append_entry('list_create', 'users:' .. uid, '{"wire":{"list":' .. json .. '}}', ms, seq, n)
  redis.call('HSET', KEY.list .. id, 'id', id, 'uid', uid, 'private', private, 'name', name, 'description', description,
    'name_json', name_json, 'description_json', description_json, 'members', '0', 'created', now)
  redis.call('ZADD', KEY.lists .. uid, id, id)
  return keep_reply(position, json)
end

-- Deletes a list. From this step on no user sees it. A job later deletes its timeline, its members, and its id in the
-- members' `listed` sets. Reply: position.
function deed.list_delete(uid, id)
  local list, denied = find_owned_list(uid, id, 'id')
  if denied then return denied end
  local ms, seq, n = next_position()
  local position = append_entry('list_delete', 'users:' .. uid, '{"wire":{"list":{"id":"' .. list.id .. '","uid":"'
    .. uid .. '","deleted":true}}}', ms, seq, n)
  redis.call('ZREM', KEY.lists .. uid, list.id)
  redis.call('DEL', KEY.list .. list.id)
  enqueue_job('drop-list-' .. list.id, 'drop', ms, 'owner', list.id)
  return keep_reply(position)
end

-- Adds a user to a list ('list_add') or removes a user from it ('list_remove'). Removing works also if the owner blocks the
-- user. If nothing changes, there is no log entry.
-- Reply: position or `unchanged`; JSON of the list, fence of the job of the list's timeline ('' for none), the
-- member's newest statuses.
function deed.list_change_member(owner, id, uid, kind)
  local list, denied = find_owned_list(owner, id, 'id', kind == 'list_add' and uid)
  if denied then return denied end
  local allowed = kind == 'list_add' and can_contact or can_see_user
  local user = allowed(owner, uid) and find_user(uid)
  if not user then return refuse('NOT_FOUND user uid') end
  local position, fence = change_list_member(kind, list, user, next_position())
  return keep_reply(position or 'unchanged', list_json(list), fence or '', newest_statuses(uid))
end

-- Changes a list or a group of users; `kind` is 'list' or 'group'. If no value changes, there is no log entry. ARGV has
-- from 6 on names of hash fields and their new values. Reply: position or `unchanged`; JSON of the list or group.
function deed.collection_update(uid, id, kind)
  local find, as_json, key = find_owned_group, group_json, KEY.group .. id
  if kind == 'list' then find, as_json, key = find_owned_list, list_json, KEY.list .. id end
  local row, denied = find(uid, id, 'id')
  if denied then return denied end
  local changed = false
  for at = 6, #ARGV, 2 do
    changed = changed or redis.call('HGET', key, ARGV[at]) ~= ARGV[at + 1]
    row[ARGV[at]] = ARGV[at + 1]
  end
  local json = as_json(row)
  if not changed then return keep_reply('unchanged', json) end
  local audience = kind == 'list' and 'users:' .. uid or 'group:' .. id
  local position = append_entry(kind .. '_update', audience, '{"wire":{"' .. kind .. '":' .. json .. '}}', next_position())
  redis.call('HSET', key, unpack(ARGV, 6))
  return keep_reply(position, json)
end
