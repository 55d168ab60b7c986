-- What a notification is about, as its receiver may see it: the members of its JSON behind the source, the same for the
-- live entry and for the page. Nothing where there is nothing to be told of. Needs the parts sight and statuses.

local function about_status(receiver, id)
  local json = show(receiver, id, SHOWN)
  return json and ',"status":' .. json
end

-- A comment comes with the status under which it stands.
local function about_comment(receiver, id)
  local kept = redis.call('HMGET', KEY.comment .. id, 'uid', 'status', 'json')
  local group = kept[1] and redis.call('HGET', KEY.status .. kept[2], 'group') or ''
  if not kept[1] or status_sight(receiver, kept[1], group) < SHOWN then
    return nil
  end
  local status = about_status(receiver, kept[2])
  return status and status .. ',"comment":' .. kept[3]
end
