-- What a notification is about, as its receiver may see it: the members of its JSON behind the source, the same for the
-- live entry and for the page. Nothing where there is nothing to be told of. Needs the parts visibility and statuses.

local function about_status(receiver, id)
  local json = show(receiver, id, SHOWN)
  return json and ',"status":' .. json
end

-- A comment comes with the status under which it stands, which may be of somebody whom the receiver has muted: it is
-- the commenter who speaks.
local function about_comment(receiver, id)
  local kept = redis.call('HMGET', KEY.comment .. id, 'uid', 'status', 'json')
  local row = kept[1] and status_row(kept[2])
  if not row or status_sight(receiver, kept[1], row.group) < SHOWN then
    return nil
  end
  local status = row_json(receiver, row, QUIET)
  return status and ',"status":' .. status .. ',"comment":' .. kept[3]
end
