-- The subject (status, comment) of a notification as JSON members, or nil if the receiver may not see the subject. The
-- log entry of the notification and the page of notifications both contain these members, after the source.

local function status_subject_json(receiver, id)
  local json = find_visible_json(receiver, id, VISIBLE)
  return json and ',"status":' .. json
end

-- A comment comes with its status. The status is included even if the receiver mutes its author, because the
-- notification is about the commenter.
local function comment_subject_json(receiver, id)
  local kept = redis.call('HMGET', KEY.comment .. id, 'uid', 'status', 'json')
  local row = kept[1] and find_status(kept[2])
  if not row or status_visibility(receiver, kept[1], row.group) < VISIBLE then return nil end
  local status = visible_status_json(receiver, row, ON_REQUEST)
  return status and ',"status":' .. status .. ',"comment":' .. kept[3]
end
