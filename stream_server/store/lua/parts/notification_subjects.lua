-- The subject of a notification as its receiver may see it, as JSON members behind the source. The live entry and the
-- page use the same. nil if the receiver may not see it. Needs the parts visibility and statuses.

local function status_subject_json(receiver, id)
  local json = find_visible_json(receiver, id, VISIBLE)
  return json and ',"status":' .. json
end

-- A comment comes with its status. The status is included even if the receiver mutes its author, because the
-- notification is about the commenter.
local function comment_subject_json(receiver, id)
  local kept = redis.call('HMGET', KEY.comment .. id, 'uid', 'status', 'json')
  local row = kept[1] and find_status(kept[2])
  if not row or status_visibility(receiver, kept[1], row.group) < VISIBLE then
    return nil
  end
  local status = visible_status_json(receiver, row, ON_REQUEST)
  return status and ',"status":' .. status .. ',"comment":' .. kept[3]
end
