local MAX_GROUPS, MAX_GROUP_MEMBERS, MAX_INVITATIONS, MAX_UNANSWERED_INVITATIONS = 1000, 5000, 1000, 3

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
local function refuse_if_full(group, user)
  if redis.call('ZCARD', KEY.joined .. group.id) >= MAX_GROUP_MEMBERS then return refuse('TOO_MANY members id') end
  if redis.call('ZCARD', KEY.groups .. user.id) >= MAX_GROUPS then return refuse('TOO_MANY groups uid') end
end

local function group_json(group)
  return '{"id":"' .. group.id .. '","uid":"' .. group.uid .. '","name":' .. group.name_json .. ',"kind":"'
    .. group.kind .. '","description":' .. group.description_json .. format(',"members":%d', group.members)
    .. ',"created":"' .. to_iso8601(group.created) .. '"}'
end

local function group_body(group, user)
  return '{"wire":{"group":' .. group_json(group) .. ',"user":' .. user_json(user) .. '}}'
end

-- Adds a user, who is not a member yet, to the group (`kind` is 'group_join'), or removes a member ('group_leave').
-- Returns the position.
local function change_group_member(kind, group, user, ms, seq, n)
  local by = kind == 'group_join' and 1 or -1
  group.members = group.members + by
  local position, now = append_entry(kind, 'group:' .. group.id, group_body(group, user), ms, seq, n)
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
