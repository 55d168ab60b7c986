-- parts: visibility statuses groups paging
-- Read a page of a sorted set of statuses, without statuses that the viewer may not see. Read only.
-- ARGV: 3 to 8 see parts/paging.lua, 9 viewer, 10 lowest visibility, 11 kind and 12 id of the set's owner. The viewer
-- must be allowed to see the owner. Kinds: 'user'; 'person' if the set shows what the user does; 'status'; 'thread' for
-- the conversation of a status; 'group'; '' for none.
-- Reply: the page with statuses as JSON, see parts/paging.lua.
local viewer, least, owner_kind, owner = ARGV[9], tonumber(ARGV[10]), ARGV[11], ARGV[12]
local root
if (owner_kind == 'user' or owner_kind == 'person') and not can_see_user(viewer, owner) then
  return refuse('NOT_FOUND user')
elseif owner_kind == 'status' or owner_kind == 'thread' then
  if not find_visible_status(viewer, owner) then return refuse('NOT_FOUND status') end
  if owner_kind == 'thread' then
    root = read_status(owner)[9]
    PAGE_KEY = KEY.thread .. root
    if redis.call('ZSCORE', PAGE_KEY, root) then root = nil end -- there is no set without an answer
  end
elseif owner_kind == 'group' and not find_visible_group(viewer, owner) then
  return refuse('NOT_FOUND group id')
end
if owner_kind == 'person' and author_visibility(viewer, owner) == HIDDEN then return {{}, {}} end

-- Rows are read as many at a time as the page wants, because most statuses are visible.
local rows = {}
return read_page(function(member, _, batch, at)
  if rows[member] == nil then
    local upto = math.min(#batch, at + 2 * (PAGE_MAX + PAGE_SKIP - 1))
    for i, row in ipairs(read_statuses(viewer, batch, at, upto, 2)) do
      rows[batch[at + 2 * (i - 1)]] = row
    end
  end
  local row = rows[member]
  return row and shown_json(viewer, least, unpack(row, 1, 8))
end, root)
