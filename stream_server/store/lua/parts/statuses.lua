-- Statuses as scripts show them: their JSON stands in the hash up to the counters. Needs the part visibility.

-- The end of a status; the counters are as Redis has them, texts.
local function counters_json(likes, comments, reposts)
  return ',"likes":' .. likes .. ',"comments":' .. comments .. ',"reposts":' .. reposts .. '}'
end

local function find_status(id)
  local kept = redis.call('HMGET', KEY.status .. id, 'uid', 'group', 'head', 'origin', 'wordless', 'likes', 'comments',
    'reposts', 'audience', 'conversation', 'lang')
  if not kept[1] then
    return nil
  end
  return {id = id, uid = kept[1], group = kept[2] or '', head = kept[3], origin = kept[4], wordless = kept[5] == '1',
    likes = kept[6], comments = kept[7], reposts = kept[8], counters = counters_json(kept[6], kept[7], kept[8]),
    audience = kept[9], conversation = kept[10], lang = kept[11]}
end

-- A status as it stands inside something else, which shows no third one. What is told to many is told in this form:
-- whoever may see a quote may not therefore see what it quotes.
local function embedded_json(row)
  return row.head .. row.counters
end

-- The row with one of its counters moved, before the hash is: what an entry says is how it stands after it.
local function with_counter_changed(row, counter, by)
  row[counter] = to_text(tonumber(row[counter]) + by)
  row.counters = counters_json(row.likes, row.comments, row.reposts)
  return row
end

-- What a repost or a quote shows of its original; nothing if the viewer may not see it. Gone is null, and no secret.
local function original_json(viewer, origin, least)
  local row = find_status(origin)
  if not row then
    return 'null'
  end
  if status_visibility(viewer, row.uid, row.group) < least then
    return nil
  end
  return embedded_json(row)
end

-- A row's JSON as a viewer sees it, or nil: a repost without words is nothing but its original.
local function visible_status_json(viewer, row, least)
  if status_visibility(viewer, row.uid, row.group) < least then
    return nil
  end
  if not row.origin then
    return embedded_json(row)
  end
  local original = original_json(viewer, row.origin, least)
  if not original and row.wordless then
    return nil
  end
  return row.head .. ',"original":' .. (original or 'null') .. row.counters
end

-- A status' JSON as a viewer sees it who sees at least so much (QUIET: asked for, SHOWN: unasked), or nil.
local function find_visible_json(viewer, id, least)
  local row = find_status(id)
  return row and visible_status_json(viewer, row, least)
end

-- The row and the JSON of a status for whoever does something to it, or nothing: not there, or not to be seen.
local function find_visible_status(viewer, id)
  local row = find_status(id)
  local json = row and visible_status_json(viewer, row, ON_REQUEST)
  if not json then
    return nil
  end
  return row, json
end
