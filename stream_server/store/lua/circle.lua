-- Lists and groups of users.
local MAX_LISTS = 100
local MAX_LIST_MEMBERS = 5000
local MAX_GROUPS = 1000
local MAX_GROUP_MEMBERS = 5000
local MAX_INVITATIONS = 1000
local MAX_UNANSWERED_INVITATIONS = 3

-- A list or a group with this key, or nil. A list has `private` ('1' or '0'), a group has `kind`. The texts are kept as
-- JSON.
local function find_circle(key, id)
  local kept = redis.call('HMGET', key .. id, 'uid', 'private', 'kind', 'name_json', 'description_json', 'members',
    'created')
  if not kept[1] then return nil end
  return {id = id, uid = kept[1], private = kept[2], kind = kept[3], name_json = kept[4], description_json = kept[5],
    members = tonumber(kept[6]), created = tonumber(kept[7])}
end

-- The same bytes as Circle.json in store/reads/circles.py.
local function circle_json(circle)
  local kind, private = circle.kind, circle.private
  return '{"id":"' .. circle.id .. '","uid":"' .. circle.uid .. '","name":' .. circle.name_json
    .. (kind and ',"kind":"' .. kind .. '"' or '') .. ',"description":' .. circle.description_json
    .. (private and ',"private":' .. (private == '1' and 'true' or 'false') or '')
    .. string.format(',"members":%d', circle.members) .. ',"created":"' .. to_iso8601(circle.created) .. '"}'
end

-- Appends the entry of a new list or group (`noun`) and stores it. `trait` is its field 'private' or 'kind'. Returns the
-- position, the JSON and the time.
local function create_circle(noun, key, trait, circle, audience, ms, seq, n)
  local json = circle_json(circle)
  local position, now = append_entry(noun .. '_create', audience, '{"wire":{"' .. noun .. '":' .. json .. '}}', ms, seq, n)
  redis.call('HSET', key .. circle.id, 'id', circle.id, 'uid', circle.uid, trait, circle[trait],
    'name_json', circle.name_json, 'description_json', circle.description_json, 'members', to_text(circle.members),
    'created', now)
  return position, json, now
end

-- The body of the entry by which a list or a group (`noun`) goes.
local function deleted_body(noun, circle)
  return '{"wire":{"' .. noun .. '":{"id":"' .. circle.id .. '","uid":"' .. circle.uid .. '","deleted":true}}}'
end

-- The body of an entry about a member of a list or a group (`noun`).
local function member_body(noun, circle, user)
  return '{"wire":{"' .. noun .. '":' .. circle_json(circle) .. ',"user":' .. user_json(user) .. '}}'
end

-- A list that this user may change. A hidden list is refused like an unknown one: only its owner sees a private list. With
-- a user to be added (`joining`), refused if the list is full.
local function require_owned_list(uid, id, param, joining)
  local list, key = find_circle(KEY.list, id), KEY.members .. id
  if not list or list.uid ~= uid and (list.private == '1' or not can_see_user(uid, list.uid)) then
    refuse('NOT_FOUND list ' .. param)
  end
  if list.uid ~= uid then refuse('NOT_YOURS list ' .. param) end
  if joining and redis.call('ZCARD', key) >= MAX_LIST_MEMBERS and not redis.call('ZSCORE', key, joining) then
    refuse('TOO_MANY members ' .. param)
  end
  return list
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
  local position, now = append_entry(kind, list_audience(list, user), member_body('list', list, user), ms, seq, n)
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

-- Does what change_list_member does, in a step that has already changed a follow: `position` is that of the follow's entry, or
-- 'unchanged'. Returns the position of the step's first entry, and the fence of the job of the list's timeline ('' for none).
local function change_list_too(kind, list, user, position)
  local changed, fence = change_list_member(kind, list, user, next_position())
  return position == 'unchanged' and changed or position, fence or ''
end

-- Creates a list; `private` is '1' or '0'. Reply: position.
function deed.list_create(uid, private, name_json, description_json) --> json
  if redis.call('ZCARD', KEY.lists .. uid) >= MAX_LISTS then refuse('TOO_MANY lists') end
  local ms, seq, n = next_position()
  local list = {id = make_id(ms, seq), uid = uid, private = private, name_json = name_json,
    description_json = description_json, members = 0, created = ms}
  local position, json = create_circle('list', KEY.list, 'private', list, 'users:' .. uid, ms, seq, n)
  redis.call('ZADD', KEY.lists .. uid, list.id, list.id)
  return keep_reply(position, json)
end

-- Deletes a list. From this step on no user sees it. A job later deletes its timeline, its members, and its id in the
-- members' `listed` sets. Reply: position.
function deed.list_delete(uid, id)
  local list, ms, seq, n = require_owned_list(uid, id, 'id'), next_position()
  local position = append_entry('list_delete', 'users:' .. uid, deleted_body('list', list), ms, seq, n)
  redis.call('ZREM', KEY.lists .. uid, id)
  redis.call('DEL', KEY.list .. id)
  enqueue_job('drop-list-' .. id, 'drop', ms, 'owner', id)
  return keep_reply(position)
end

-- Adds a user to a list ('list_add') or removes a user from it ('list_remove'). Removing works also if the owner blocks the
-- user. If nothing changes, there is no log entry.
-- Reply: position or `unchanged`; JSON of the list, fence of the job of the list's timeline ('' for none), the
-- member's newest statuses.
function deed.list_change_member(owner, id, uid, kind) --> json, fence, newest
  local list = require_owned_list(owner, id, 'id', kind == 'list_add' and uid)
  local allowed = kind == 'list_add' and can_contact or can_see_user
  local user = allowed(owner, uid) and find_user(uid) or refuse('NOT_FOUND user uid')
  local position, fence = change_list_member(kind, list, user, next_position())
  return keep_reply(position or 'unchanged', circle_json(list), fence or '', newest_statuses(uid))
end

-- A group that this viewer may see, and whether the viewer is a member; or nil. Members always see their group, because
-- they must be able to leave it. Others see a group that is not private, unless they may not see its owner.
local function find_visible_group(viewer, id)
  local group = find_circle(KEY.group, id)
  local within = group and redis.call('ZSCORE', KEY.joined .. id, viewer)
  if within then return group, true end
  if group and group.kind ~= 'private' and can_see_user(viewer, group.uid) then return group, false end
  return nil
end

-- A group that this user owns. A hidden group is refused like an unknown one.
local function require_owned_group(uid, id)
  local group = find_visible_group(uid, id) or refuse('NOT_FOUND group id')
  if group.uid ~= uid then refuse('NOT_YOURS group id') end
  return group
end

-- A group to which this user is invited, or nil. An invitation by a user who cannot contact this one does not count.
local function find_inviting_group(uid, id)
  local group = redis.call('ZSCORE', KEY.invitations .. uid, id) and find_circle(KEY.group, id)
  return group and can_contact(uid, group.uid) and group or nil
end

-- Refuses if the user has too many invitations, in all or by this owner. The name of each group is a message.
local function refuse_if_invited_often(owner, uid)
  local invitations, by_owner = redis.call('ZRANGE', KEY.invitations .. uid, 0, -1), 0
  if #invitations >= MAX_INVITATIONS then refuse('TOO_MANY invitations uid') end
  for _, id in ipairs(invitations) do
    if redis.call('HGET', KEY.group .. id, 'uid') == owner then by_owner = by_owner + 1 end
  end
  if by_owner >= MAX_UNANSWERED_INVITATIONS then refuse('UNANSWERED invitations uid') end
end

-- Refuses if the group is full or the user is in too many groups.
local function refuse_if_full(group, uid)
  if redis.call('ZCARD', KEY.joined .. group.id) >= MAX_GROUP_MEMBERS then refuse('TOO_MANY members id') end
  if redis.call('ZCARD', KEY.groups .. uid) >= MAX_GROUPS then refuse('TOO_MANY groups uid') end
end

-- Invites a user to a group, or ends the invitation (`when` is nil).
local function set_invitation(group, uid, when)
  set_member(KEY.invitations .. uid, group, when)
  set_member(KEY.invited .. group, uid, when)
end

-- Adds a user, who is not a member yet, to the group (`kind` is 'group_join'), or removes a member ('group_leave').
-- Returns the position.
local function change_group_member(kind, group, user, ms, seq, n)
  local by = kind == 'group_join' and 1 or -1
  group.members = group.members + by
  local position, now = append_entry(kind, 'group:' .. group.id, member_body('group', group, user), ms, seq, n)
  set_member(KEY.joined .. group.id, user.id, by > 0 and now)
  if by > 0 then
    redis.call('ZADD', KEY.groups .. user.id, now, group.id)
    trim_ended(user.id)
  else
    end_relation_with(KEY.groups, user.id, group.id, redis.call('ZSCORE', KEY.groups .. user.id, group.id), now)
  end
  redis.call('HINCRBY', KEY.group .. group.id, 'members', by)
  return position
end

-- Creates a group with its owner as first member. Reply: position.
function deed.group_create(uid, kind, name_json, description_json) --> json
  if redis.call('ZCARD', KEY.groups .. uid) >= MAX_GROUPS then refuse('TOO_MANY groups') end
  local ms, seq, n = next_position()
  local id = make_id(ms, seq)
  local group = {id = id, uid = uid, kind = kind, name_json = name_json, description_json = description_json, members = 1,
    created = ms}
  local position, json, now = create_circle('group', KEY.group, 'kind', group, 'group:' .. id, ms, seq, n)
  set_member(KEY.joined .. id, uid, now)
  set_member(KEY.groups .. uid, id, now)
  trim_ended(uid)
  return keep_reply(position, json)
end

-- Deletes a group and all its memberships in one step. The maximum of 5,000 members takes 20 to 50 ms, in which Redis
-- does nothing else. Afterwards only their authors can see and delete the statuses posted in the group. Returns the position.
local function delete_group(group, ms, seq, n)
  local id = group.id
  local position, now = append_entry('group_delete', 'group:' .. id, deleted_body('group', group), ms, seq, n)
  local members = redis.call('ZRANGE', KEY.joined .. id, 0, -1, 'WITHSCORES')
  for at = 1, #members, 2 do
    -- As end_relation_with does, without the cap, because this must not take long. The user's next group brings the cap.
    redis.call('ZREM', KEY.groups .. members[at], id)
    redis.call('ZADD', KEY.ended .. members[at], now, id .. '-' .. members[at + 1])
  end
  for _, invited in ipairs(redis.call('ZRANGE', KEY.invited .. id, 0, -1)) do
    redis.call('ZREM', KEY.invitations .. invited, id)
  end
  redis.call('DEL', KEY.group .. id, KEY.joined .. id, KEY.grouped .. id, KEY.invited .. id)
  return position
end

-- Deletes a group of the user. Reply: position.
function deed.group_delete(uid, id)
  return keep_reply(delete_group(require_owned_group(uid, id), next_position()))
end

-- Adds a member to a group. In a private group its owner does this, and users join other groups themselves. A user who
-- does not follow the owner is only invited, and joins the group himself or herself. If the user is a member already, nothing
-- changes, and there is no log entry.
-- Reply: position, `unchanged`, `invited` or `unchanged invited`.
function write.group_join(uid, id, other) --> json
  local user = require_active_user(uid)
  local group, within = find_visible_group(uid, id)
  if not group and uid == other then group = find_inviting_group(uid, id) end
  if not group then refuse('NOT_FOUND group id') end
  if uid ~= other then
    if group.uid ~= uid then refuse('NOT_YOURS group id') end
    user = can_contact(uid, other) and find_user(other) or refuse('NOT_FOUND user uid')
    within = redis.call('ZSCORE', KEY.joined .. id, other)
    if not within and group.kind ~= 'private' then refuse('BY_THEMSELVES uid') end
    if not within and ASK_STRANGERS and not redis.call('ZSCORE', KEY.following .. other, uid) then
      if redis.call('ZSCORE', KEY.invitations .. other, id) then
        return keep_reply('unchanged invited', circle_json(group))
      end
      refuse_if_invited_often(uid, other)
      set_invitation(id, other, to_text(now_ms()))
      return keep_reply('invited', circle_json(group))
    end
  end
  if within then return keep_reply('unchanged', circle_json(group)) end
  refuse_if_full(group, other)
  local position = change_group_member('group_join', group, user, next_position())
  set_invitation(id, other)
  return keep_reply(position, circle_json(group))
end

-- Removes a member from a group. The owner may remove any other member, and a member may leave, but the owner cannot. If
-- the user is not a member, only an invitation ends (`ended`), and there is no log entry.
-- Reply: position, `ended` or `unchanged`.
function deed.group_leave(uid, id, other) --> json
  local group = find_visible_group(uid, id) or find_inviting_group(uid, id) or refuse('NOT_FOUND group id')
  if uid ~= other and group.uid ~= uid then refuse('NOT_YOURS group id') end
  if other == group.uid then refuse('OWNER uid') end
  if not redis.call('ZSCORE', KEY.joined .. id, other) then
    if not can_see_user(uid, other) then refuse('NOT_FOUND user uid') end
    local is_invited = redis.call('ZSCORE', KEY.invitations .. other, id)
    set_invitation(id, other)
    return keep_reply(is_invited and 'ended' or 'unchanged', circle_json(group))
  end
  local position = change_group_member('group_leave', group, find_user(other), next_position())
  return keep_reply(position, circle_json(group))
end

-- Changes a list or a group of users; `noun` is 'list' or 'group'. If no value changes, there is no log entry. From
-- REST on there are names of hash fields and their new values. Reply: position or `unchanged`.
function deed.circle_update(uid, id, noun, ...) --> json
  local is_list, changed = noun == 'list', false
  local circle = (is_list and require_owned_list or require_owned_group)(uid, id, 'id')
  local key = (is_list and KEY.list or KEY.group) .. id
  for at = REST, #ARGV, 2 do
    changed = changed or redis.call('HGET', key, ARGV[at]) ~= ARGV[at + 1]
    circle[ARGV[at]] = ARGV[at + 1]
  end
  local json = circle_json(circle)
  if not changed then return keep_reply('unchanged', json) end
  local audience = (is_list and 'users:' .. uid) or 'group:' .. id
  local position = append_entry(noun .. '_update', audience, '{"wire":{"' .. noun .. '":' .. json .. '}}', next_position())
  redis.call('HSET', key, unpack(ARGV, REST))
  return keep_reply(position, json)
end
