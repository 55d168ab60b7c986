-- parts: visibility statuses paging
-- Read a page of the comments under a status, without those by hidden users or users whom the viewer mutes. Read only.
-- ARGV: 3 to 8 see parts/paging.lua, 9 viewer, 10 status. Reply: the page with comments as JSON, see parts/paging.lua.
local viewer = ARGV[9]
local row = find_visible_status(viewer, ARGV[10])
if not row then return refuse('NOT_FOUND status') end
return read_page(function(member)
  local kept = redis.call('HMGET', KEY.comment .. member, 'uid', 'json')
  return kept[1] and status_visibility(viewer, kept[1], row.group) == VISIBLE and kept[2]
end)
