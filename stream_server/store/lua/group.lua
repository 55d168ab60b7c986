-- Groups of users.
local MAX_GROUPS = 1000
local MAX_GROUP_MEMBERS = 5000
local MAX_INVITATIONS = 1000
local MAX_UNANSWERED_INVITATIONS = 3

-- A group by its id, or nil. Its texts are kept twice: as they are, and encoded for its JSON.
local function find_group(id)
  local kept = redis.call('HMGET', KEY.group .. id, 'uid', 'kind', 'name_json', 'description_json', 'members',
    'created')
  if not kept[1] then return nil end
  return {id = id, uid = kept[1], kind = kept[2], name_json = kept[3], description_json = kept[4],
    members = tonumber(kept[5]), created = tonumber(kept[6])}
end

-- A group that this viewer may see, and whether the viewer is a member; or nil. Members always see their group, because
-- they must be able to leave it. Others see a group that is not private, unless they may not see its owner.
local function find_visible_group(viewer, id)
  local group = find_group(id)
  local within = group and redis.call('ZSCORE', KEY.joined .. id, viewer)
  if within then return group, true end
  if group and group.kind ~= 'private' and can_see_user(viewer, group.uid) then return group, false end
  return nil
end

-- A group to which this user is invited, or nil. An invitation by a user who cannot contact this one does not count.
local function find_inviting_group(uid, id)
  local group = redis.call('ZSCORE', KEY.invitations .. uid, id) and find_group(id)
  return group and can_contact(uid, group.uid) and group or nil
end

-- The refusal if the user has too many invitations, in all or by this owner; or nil. The name of each group is a message.
local function refuse_if_invited_often(owner, uid)
  local invitations, by_owner = redis.call('ZRANGE', KEY.invitations .. uid, 0, -1), 0
  if #invitations >= MAX_INVITATIONS then return refuse('TOO_MANY invitations uid') end
  for _, id in ipairs(invitations) do
    if redis.call('HGET', KEY.group .. id, 'uid') == owner then by_owner = by_owner + 1 end
  end
  if by_owner >= MAX_UNANSWERED_INVITATIONS then return refuse('UNANSWERED invitations uid') end
end

-- Invites a user to a group, or ends the invitation (`when` is nil).
local function set_invitation(group, uid, when)
  set_member(KEY.invitations .. uid, group, when)
  set_member(KEY.invited .. group, uid, when)
end

-- A group that this user owns; or nil and the refusal. A hidden group is refused like an unknown one.
local function find_owned_group(uid, id)
  local group = find_visible_group(uid, id)
  if not group then return nil, refuse('NOT_FOUND group id') end
  if group.uid ~= uid then return nil, refuse('NOT_YOURS group id') end
  return group
end

-- The refusal if the group is full or the user is in too many groups; or nil.
local function refuse_if_full(group, uid)
  if redis.call('ZCARD', KEY.joined .. group.id) >= MAX_GROUP_MEMBERS then return refuse('TOO_MANY members id') end
  if redis.call('ZCARD', KEY.groups .. uid) >= MAX_GROUPS then return refuse('TOO_MANY groups uid') end
end

local function group_json(group)
  return '{"id":"' .. group.id .. '","uid":"' .. group.uid .. '","name":' .. group.name_json .. ',"kind":"'
    .. group.kind .. '","description":' .. group.description_json .. string.format(',"members":%d', group.members)
    .. ',"created":"' .. to_iso8601(group.created) .. '"}'
end

-- Adds a user, who is not a member yet, to the group (`kind` is 'group_join'), or removes a member ('group_leave').
-- Returns the position.
local function change_group_member(kind, group, user, ms, seq, n)
  local by = kind == 'group_join' and 1 or -1
  group.members = group.members + by
  local body = '{"wire":{"group":' .. group_json(group) .. ',"user":' .. user_json(user) .. '}}'
  local position, now = append_entry(kind, 'group:' .. group.id, body, ms, seq, n)
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

-- Creates a group with its owner as first member. Reply: position; JSON of the group.
function deed.group_create(uid, kind, name, description, name_json, description_json)
  if redis.call('ZCARD', KEY.groups .. uid) >= MAX_GROUPS then return refuse('TOO_MANY groups') end
  local ms, seq, n = next_position()
  local id = make_id(ms, seq)
  local json = group_json({id = id, uid = uid, kind = kind, name_json = name_json, description_json = description_json,
    members = 1, created = ms})
  local position, now = append_entry('group_create', 'group:' .. id, '{"wire":{"group":' .. json .. '}}', ms, seq, n)
  redis.call('HSET', KEY.group .. id, 'id', id, 'uid', uid, 'kind', kind, 'name', name, 'description', description,
    'name_json', name_json, 'description_json', description_json, 'members', '1', 'created', now)
  set_member(KEY.joined .. id, uid, now)
  set_member(KEY.groups .. uid, id, now)
  trim_ended(uid)
  return keep_reply(position, json)
end

-- Deletes a group and all its memberships in one step. The maximum of 5,000 members takes 20 to 50 ms, in which Redis
-- does nothing else. Afterwards only their authors can see and delete the statuses posted in the group. Reply: position.
function deed.group_delete(uid, id)
  local group, denied = find_owned_group(uid, id)
  if denied then return denied end
  local position, now = append_entry('group_delete', 'group:' .. id, '{"wire":{"group":{"id":"' .. id .. '","uid":"'
    .. uid .. '","deleted":true}}}', next_position())
  redis.call('DEL', KEY.group .. group.id)
  local members = redis.call('ZRANGE', KEY.joined .. id, 0, -1, 'WITHSCORES')
  for at = 1, #members, 2 do
    -- As end_relation_with does, without the cap, because this must not take long. The user's next group brings the cap.
    redis.call('ZREM', KEY.groups .. members[at], id)
    redis.call('ZADD', KEY.ended .. members[at], now, id .. '-' .. members[at + 1])
  end
  for _, invited in ipairs(redis.call('ZRANGE', KEY.invited .. id, 0, -1)) do
    redis.call('ZREM', KEY.invitations .. invited, id)
  end
  redis.call('DEL', KEY.joined .. id, KEY.grouped .. id, KEY.invited .. id)
  return keep_reply(position)
end

-- Adds a member to a group. In a private group its owner does this, and users join other groups themselves. A user who
-- does not follow the owner is only invited, and joins the group himself or herself. If the user is a member already, nothing
-- changes, and there is no log entry.
-- Reply: position, `unchanged`, `invited` or `unchanged invited`; JSON of the group.
function write.group_join(uid, id, other)
  local user, refused = find_active_user(uid)
  if refused then return refused end
  local group, within = find_visible_group(uid, id)
  if not group and uid == other then group = find_inviting_group(uid, id) end
  if not group then return refuse('NOT_FOUND group id') end
  if uid ~= other then
    if group.uid ~= uid then return refuse('NOT_YOURS group id') end
    user = can_contact(uid, other) and find_user(other)
    if not user then return refuse('NOT_FOUND user uid') end
    within = redis.call('ZSCORE', KEY.joined .. id, other)
    if not within and group.kind ~= 'private' then return refuse('BY_THEMSELVES uid') end
    if not within and ASK_STRANGERS and not redis.call('ZSCORE', KEY.following .. other, uid) then
      if redis.call('ZSCORE', KEY.invitations .. other, id) then
        return keep_reply('unchanged invited', group_json(group))
      end
      local often = refuse_if_invited_often(uid, other)
      if often then return often end
      set_invitation(id, other, to_text(now_ms()))
      return keep_reply('invited', group_json(group))
    end
  end
  if within then return keep_reply('unchanged', group_json(group)) end
  local full = refuse_if_full(group, other)
  if full then return full end
  local position = change_group_member('group_join', group, user, next_position())
  set_invitation(id, other)
  return keep_reply(position, group_json(group))
end

-- Removes a member from a group. The owner may remove any other member, and a member may leave, but the owner cannot. If
-- the user is not a member, only an invitation ends (`ended`), and there is no log entry.
-- Reply: position, `ended` or `unchanged`; JSON of the group.
function deed.group_leave(uid, id, other)
  local group = find_visible_group(uid, id) or find_inviting_group(uid, id)
  if not group then return refuse('NOT_FOUND group id') end
  if uid ~= other and group.uid ~= uid then return refuse('NOT_YOURS group id') end
  if other == group.uid then return refuse('OWNER uid') end
  if not redis.call('ZSCORE', KEY.joined .. id, other) then
    if not can_see_user(uid, other) then return refuse('NOT_FOUND user uid') end
    local is_invited = redis.call('ZSCORE', KEY.invitations .. other, id)
    set_invitation(id, other)
    return keep_reply(is_invited and 'ended' or 'unchanged', group_json(group))
  end
  local position = change_group_member('group_leave', group, find_user(other), next_position())
  return keep_reply(position, group_json(group))
end
