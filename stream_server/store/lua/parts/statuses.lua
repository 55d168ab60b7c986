-- Statuses as scripts show them. The hash keeps their JSON up to the counters.

-- The end of a status's JSON; the counters are text, as Redis returns them.
local function counters_json(likes, comments, reposts)
  return ',"likes":' .. likes .. ',"comments":' .. comments .. ',"reposts":' .. reposts .. '}'
end

local function find_status(id)
  local kept = redis.call('HMGET', KEY.status .. id, 'uid', 'group', 'head', 'origin', 'wordless', 'likes', 'comments',
    'reposts', 'audience', 'conversation', 'lang')
  if not kept[1] then return nil end
  return {id = id, uid = kept[1], group = kept[2] or '', head = kept[3], origin = kept[4], wordless = kept[5] == '1',
    likes = kept[6], comments = kept[7], reposts = kept[8], counters = counters_json(kept[6], kept[7], kept[8]),
    audience = kept[9], conversation = kept[10], lang = kept[11]}
end

-- A status's JSON inside something else, without its original. Entries use this form, because a user who may see a
-- quote may not be allowed to see what it quotes.
local function embedded_json(row)
  return row.head .. row.counters
end

-- The row with one counter changed. The entry shows the new value before the hash has it.
local function with_counter_changed(row, counter, by)
  row[counter] = to_text(tonumber(row[counter]) + by)
  row.counters = counters_json(row.likes, row.comments, row.reposts)
  return row
end

-- What a repost or a quote shows of its original; nil if the viewer may not see it, null if it is deleted.
local function original_json(viewer, origin, least)
  local row = find_status(origin)
  if not row then return 'null' end
  if status_visibility(viewer, row.uid, row.group) < least then return nil end
  return embedded_json(row)
end

-- A row's JSON as a viewer sees it, or nil. A plain repost shows nothing but its original, so it is hidden with it.
local function visible_status_json(viewer, row, least)
  if status_visibility(viewer, row.uid, row.group) < least then return nil end
  if not row.origin then return embedded_json(row) end
  local original = original_json(viewer, row.origin, least)
  if not original and row.wordless then return nil end
  return row.head .. ',"original":' .. (original or 'null') .. row.counters
end

-- A status's JSON if its visibility for the viewer is at least `least` (ON_REQUEST or VISIBLE), or nil.
local function find_visible_json(viewer, id, least)
  local row = find_status(id)
  return row and visible_status_json(viewer, row, least)
end

-- The row and the JSON of a status that the user reacts to; nil if it is unknown or hidden.
local function find_visible_status(viewer, id)
  local row = find_status(id)
  local json = row and visible_status_json(viewer, row, ON_REQUEST)
  if not json then return nil end
  return row, json
end
