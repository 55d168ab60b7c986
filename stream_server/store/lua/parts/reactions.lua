-- What people do to each other's statuses. Needs the parts users, visibility and statuses.

-- A status to which a user may do something, or nothing and the refusal: it must be seen, and what is in a group is for
-- its members, also to like; also one's own, when one has left.
local function open_to(uid, id)
  local row = seen(uid, id)
  if not row then
    return nil, refuse('NOT_FOUND status')
  elseif row.group ~= '' and not redis.call('ZSCORE', KEY.joined .. row.group, uid) then
    return nil, refuse('NOT_YOURS group')
  end
  return row
end

-- The audience of what one person does to another's status.
local function deed_audience(actor, row)
  if row.group ~= '' then
    return 'group:' .. row.group
  end
  local hidden_actor = protects(actor)
  local hidden_author = protects(row.uid)
  if hidden_actor and hidden_author and actor ~= row.uid then
    return 'users:' .. actor .. ',' .. row.uid
  end
  return hidden_actor and 'followers:' .. actor or hidden_author and 'followers:' .. row.uid or PUBLIC
end

-- The wire of what one person does to a status.
local function deed_body(source, row)
  return '{"wire":{"source":' .. person_json(source) .. ',"status":' .. inner_json(row) .. '}}'
end
