-- A status to which this user may react; or nil and the refusal. The user must see it, and must be a member if it
-- stands in a group, even if it is the user's own.
local function find_reactable_status(uid, id)
  local row = find_visible_status(uid, id)
  if not row then
    return nil, refuse('NOT_FOUND status')
  elseif row.group ~= '' and not redis.call('ZSCORE', KEY.joined .. row.group, uid) then
    return nil, refuse('NOT_YOURS group')
  end
  return row
end

-- The audience of a user's reaction to a status.
local function reaction_audience(actor, row)
  if row.group ~= '' then return 'group:' .. row.group end
  local hidden_actor = is_protected(actor)
  local hidden_author = is_protected(row.uid)
  if hidden_actor and hidden_author and actor ~= row.uid then return 'users:' .. actor .. ',' .. row.uid end
  return hidden_actor and 'followers:' .. actor or hidden_author and 'followers:' .. row.uid or PUBLIC
end

-- The body of a reaction's entry.
local function reaction_body(source, row)
  return '{"wire":{"source":' .. user_json(source) .. ',"status":' .. embedded_json(row) .. '}}'
end
