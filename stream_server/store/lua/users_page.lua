-- parts: users visibility statuses lists groups paging
-- Read a page of a sorted set of users, each with `since`. Read only.
-- ARGV: 3 to 8 those of the part paging, 9 viewer, 10 kind and 11 id of the set's owner. The viewer must be allowed to
-- see the owner. Kinds: 'user', 'status', 'list', 'group', '' for none.
-- Reply: that of the part paging, users as JSON.
local viewer, owner_kind, owner = ARGV[9], ARGV[10], ARGV[11]
local row = owner_kind == 'status' and find_visible_status(viewer, owner)
if owner_kind == 'user' and not can_see_user(viewer, owner) then
  return refuse('NOT_FOUND user')
elseif owner_kind == 'status' and not row then
  return refuse('NOT_FOUND status')
elseif owner_kind == 'list' and not find_visible_list(viewer, owner) then
  return refuse('NOT_FOUND list id')
elseif owner_kind == 'group' and not find_visible_group(viewer, owner) then
  return refuse('NOT_FOUND group id')
end

-- A reaction to a status is as visible as a status by the same user there; otherwise the user's card decides.
local function is_visible(member)
  if row then
    return status_visibility(viewer, member, row.group) ~= HIDDEN
  end
  return can_see_user(viewer, member)
end
return read_page(function(member, score)
  return is_visible(member) and user_json(find_user(member)):sub(1, -2) .. ',"since":"' .. to_iso8601(tonumber(score))
    .. '"}'
end)
