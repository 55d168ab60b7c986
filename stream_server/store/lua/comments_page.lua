-- parts: visibility statuses paging
-- A piece of the comments under a status, each as JSON, without those of people whom the viewer does not see or does not
-- want to hear: read only. After the walk's arguments: viewer, status.
local viewer = ARGV[9]
local row = find_visible_status(viewer, ARGV[10])
if not row then
  return refuse('NOT_FOUND status')
end
return read_page(function(member)
  local kept = redis.call('HMGET', KEY.comment .. member, 'uid', 'json')
  return kept[1] and status_visibility(viewer, kept[1], row.group) == VISIBLE and kept[2]
end)
