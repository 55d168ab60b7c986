-- parts: users visibility statuses lists groups paging
-- A piece of a sorted set of users, each with `since`: read only. After the walk's arguments: viewer, and what the set
-- hangs on, which the viewer must be allowed to know of: its kind ('user', 'status',
-- 'list', 'group', or '' for nothing) and id.
local viewer, owner_kind, owner = ARGV[9], ARGV[10], ARGV[11]
local row = owner_kind == 'status' and seen(viewer, owner)
if owner_kind == 'user' and not knows(viewer, owner) then
  return refuse('NOT_FOUND user')
elseif owner_kind == 'status' and not row then
  return refuse('NOT_FOUND status')
elseif owner_kind == 'list' and not seen_list(viewer, owner) then
  return refuse('NOT_FOUND list id')
elseif owner_kind == 'group' and not seen_group(viewer, owner) then
  return refuse('NOT_FOUND group id')
end

-- What somebody did to a status is seen like what they write there; anything else goes by their card.
local function meets(member)
  if row then
    return status_sight(viewer, member, row.group) ~= HIDDEN
  end
  return knows(viewer, member)
end
return walk(function(member, score)
  return meets(member) and person_json(person(member)):sub(1, -2) .. ',"since":"' .. iso(tonumber(score)) .. '"}'
end)
