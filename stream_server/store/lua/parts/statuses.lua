-- Statuses as scripts show them: their JSON stands in the hash up to the counters. Needs the part sight.

-- The end of a status; the counters are as Redis has them, texts.
local function counted(likes, comments, reposts)
  return ',"likes":' .. likes .. ',"comments":' .. comments .. ',"reposts":' .. reposts .. '}'
end

local function status_row(id)
  local kept = redis.call('HMGET', KEY.status .. id, 'uid', 'group', 'head', 'origin', 'wordless', 'likes', 'comments',
    'reposts', 'audience', 'conversation', 'lang')
  if not kept[1] then
    return nil
  end
  return {id = id, uid = kept[1], group = kept[2] or '', head = kept[3], origin = kept[4], wordless = kept[5] == '1',
    counters = counted(kept[6], kept[7], kept[8]), audience = kept[9], conversation = kept[10], lang = kept[11],
    reposted = tonumber(kept[8])}
end

-- What a repost or a quote shows of its original; nothing if the viewer may not see it. Gone is null, and no secret.
local function original_json(viewer, origin, least)
  local row = status_row(origin)
  if not row then
    return 'null'
  end
  if status_sight(viewer, row.uid, row.group) < least then
    return nil
  end
  return row.head .. row.counters
end

-- A row's JSON as a viewer sees it, or nil: a repost without words is nothing but its original.
local function row_json(viewer, row, least)
  if status_sight(viewer, row.uid, row.group) < least then
    return nil
  end
  if not row.origin then
    return row.head .. row.counters
  end
  local original = original_json(viewer, row.origin, least)
  if not original and row.wordless then
    return nil
  end
  return row.head .. ',"original":' .. (original or 'null') .. row.counters
end

-- A status' JSON as a viewer sees it who sees at least so much (QUIET: asked for, SHOWN: unasked), or nil.
local function show(viewer, id, least)
  local row = status_row(id)
  return row and row_json(viewer, row, least)
end

-- The row and the JSON of a status for whoever does something to it, or nothing: not there, or not to be seen.
local function seen(viewer, id)
  local row = status_row(id)
  local json = row and row_json(viewer, row, QUIET)
  if not json then
    return nil
  end
  return row, json
end

-- The audience of what one person does to another's status.
local function deed_audience(actor, row)
  if row.group ~= '' then
    return 'group:' .. row.group
  end
  local hidden_actor = redis.call('HGET', KEY.user .. actor, 'protected') == '1'
  local hidden_author = redis.call('HGET', KEY.user .. row.uid, 'protected') == '1'
  if hidden_actor and hidden_author and actor ~= row.uid then
    return 'users:' .. actor .. ',' .. row.uid
  end
  return hidden_actor and 'followers:' .. actor or hidden_author and 'followers:' .. row.uid or PUBLIC
end
