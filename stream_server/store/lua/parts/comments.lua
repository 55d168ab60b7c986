-- Comments. A viewer sees a comment if the viewer sees its status and its commenter.

-- A comment, the row of its status, and the viewer's visibility of it; nil if the comment or its status does not exist.
local function find_comment(viewer, id)
  local kept = redis.call('HMGET', KEY.comment .. id, 'uid', 'status', 'json', 'mentioned', 'audience')
  local row = kept[1] and find_status(kept[2])
  if not row then return nil end
  local comment = {id = id, uid = kept[1], json = kept[3], mentioned = kept[4] or '', audience = kept[5]}
  local under = visible_status_json(viewer, row, ON_REQUEST) and status_visibility(viewer, kept[1], row.group) or HIDDEN
  return comment, row, under
end
