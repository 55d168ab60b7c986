-- What a notification is about, as its receiver may see it: the members of its JSON behind the source, the same for the
-- live entry and for the page. Nothing where there is nothing to be told of. Needs the parts visibility and statuses.

local function status_subject_json(receiver, id)
  local json = find_visible_json(receiver, id, VISIBLE)
  return json and ',"status":' .. json
end

-- A comment comes with the status under which it stands, which may be of somebody whom the receiver has muted: it is
-- the commenter who speaks.
local function comment_subject_json(receiver, id)
  local kept = redis.call('HMGET', KEY.comment .. id, 'uid', 'status', 'json')
  local row = kept[1] and find_status(kept[2])
  if not row or status_visibility(receiver, kept[1], row.group) < VISIBLE then
    return nil
  end
  local status = visible_status_json(receiver, row, ON_REQUEST)
  return status and ',"status":' .. status .. ',"comment":' .. kept[3]
end
