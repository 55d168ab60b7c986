-- What people do to each other's statuses. Needs the parts users, visibility and statuses.

-- A status to which a user may do something, or nothing and the refusal: it must be seen, and what is in a group is for
-- its members, also to like; also one's own, when one has left.
local function find_reactable_status(uid, id)
  local row = find_visible_status(uid, id)
  if not row then
    return nil, refuse('NOT_FOUND status')
  elseif row.group ~= '' and not redis.call('ZSCORE', KEY.joined .. row.group, uid) then
    return nil, refuse('NOT_YOURS group')
  end
  return row
end

-- The audience of what one person does to another's status.
local function reaction_audience(actor, row)
  if row.group ~= '' then
    return 'group:' .. row.group
  end
  local hidden_actor = is_protected(actor)
  local hidden_author = is_protected(row.uid)
  if hidden_actor and hidden_author and actor ~= row.uid then
    return 'users:' .. actor .. ',' .. row.uid
  end
  return hidden_actor and 'followers:' .. actor or hidden_author and 'followers:' .. row.uid or PUBLIC
end

-- The wire of what one person does to a status.
local function reaction_body(source, row)
  return '{"wire":{"source":' .. user_json(source) .. ',"status":' .. embedded_json(row) .. '}}'
end
