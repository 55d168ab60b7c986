-- parts: visibility statuses paging
-- Read a page of the comments under a status, without those that are hidden or by users whom the viewer mutes. Read
-- only.
-- ARGV: 3 to 8 those of the part paging, 9 viewer, 10 status. Reply: that of the part paging, comments as JSON.
local viewer = ARGV[9]
local row = find_visible_status(viewer, ARGV[10])
if not row then
  return refuse('NOT_FOUND status')
end
return read_page(function(member)
  local kept = redis.call('HMGET', KEY.comment .. member, 'uid', 'json')
  return kept[1] and status_visibility(viewer, kept[1], row.group) == VISIBLE and kept[2]
end)
