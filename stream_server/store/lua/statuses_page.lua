-- parts: visibility statuses groups paging
-- Read a page of a sorted set of statuses, without statuses that the viewer may not see. Read only.
-- ARGV: 3 to 8 see parts/paging.lua, 9 viewer, 10 lowest visibility, 11 kind and 12 id of the set's owner. The viewer
-- must be allowed to see the owner. Kinds: 'user'; 'person' if the set shows what the user does; 'status'; 'thread' for
-- the conversation of a status; 'group'; '' for none.
-- Reply: the page with statuses as JSON, see parts/paging.lua.
local viewer, least, owner_kind, owner = ARGV[9], tonumber(ARGV[10]), ARGV[11], ARGV[12]
if (owner_kind == 'user' or owner_kind == 'person') and not can_see_user(viewer, owner) then
  return refuse('NOT_FOUND user')
elseif owner_kind == 'status' or owner_kind == 'thread' then
  if not find_visible_status(viewer, owner) then return refuse('NOT_FOUND status') end
  if owner_kind == 'thread' then PAGE_KEY = KEY.thread .. redis.call('HGET', KEY.status .. owner, 'conversation') end
elseif owner_kind == 'group' and not find_visible_group(viewer, owner) then
  return refuse('NOT_FOUND group id')
end
if owner_kind == 'person' and author_visibility(viewer, owner) == HIDDEN then return {{}, {}} end
return read_page(function(member)
  return find_visible_json(viewer, member, least)
end)
