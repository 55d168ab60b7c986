-- Statuses as scripts show them. The hash keeps their JSON up to the counters.

-- A status's JSON; the counters are text, as Redis returns them.
local function status_json(head, likes, comments, reposts)
  return head .. ',"likes":' .. likes .. ',"comments":' .. comments .. ',"reposts":' .. reposts .. '}'
end

-- A status as an array, because pages have many: head, author, likes, comments, reposts, group ('' for none), origin, and
-- whether it is a plain repost. nil if the status does not exist. See lua/nouns/status.lua for the field `row`.
local function read_status(id)
  local kept = redis.call('HMGET', KEY.status .. id, 'row', 'uid', 'likes', 'comments', 'reposts', 'group', 'origin')
  if not kept[1] then return nil end
  local login, message, posted, where, lang, entities, links, conversation, foreign_id = kept[1]:match(
    '^([^\1]*)\1([^\1]*)\1([^\1]*)\1([^\1]*)\1([^\1]*)\1([^\1]*)\1([^\1]*)\1([^\1]*)\1(.*)$')
  kept[1] = '{"id":"' .. id .. (foreign_id == '' and '","uid":"' or '","foreign_id":"' .. foreign_id .. '","uid":"')
    .. kept[2] .. '","login":"' .. login .. '","message":' .. message .. ',"posted":"' .. posted .. '",'
    .. (where == '' and '"location":null,"place":null' or where) .. ',"lang":"' .. lang .. '","entities":'
    .. (entities == '' and '{"mentions":[],"hashtags":[],"cashtags":[],"urls":[]}' or entities) .. ','
    .. (links == '' and '"in_reply_to":null,"in_reply_to_uid":null,"origin":null,"media":[],"meta":null,"group":null'
      or links) .. ',"conversation":"' .. (conversation == '' and id or conversation) .. '"'
  kept[6], kept[8] = kept[6] or '', kept[7] and message == '""'
  kept[9] = conversation == '' and id or conversation
  return kept
end

-- A status with names, or nil.
local function find_status(id)
  local kept = read_status(id)
  return kept and {id = id, head = kept[1], uid = kept[2], likes = kept[3], comments = kept[4], reposts = kept[5],
    group = kept[6], origin = kept[7], wordless = kept[8]}
end

-- Reads the statuses ids[from], ids[from + step] … ids[upto] as arrays (false for one that does not exist) with their
-- originals, and the facts between the viewer and all their authors at once. Only for scripts that change no status.
local known_rows = {}

local function read_statuses(viewer, ids, from, upto, step)
  local rows, authors = {}, {}
  for at = from, upto, step do
    local row = read_status(ids[at])
    rows[#rows + 1] = row or false
    if row then
      authors[#authors + 1] = row[2]
      local original = row[7] and (known_rows[row[7]] or read_status(row[7]))
      if original then known_rows[row[7]], authors[#authors + 1] = original, original[2] end
    end
  end
  load_relation_facts(viewer, authors)
  return rows
end

-- A status's JSON inside something else, without its original. Entries use this form, because a user who may see a
-- quote may not be allowed to see what it quotes.
local function embedded_json(row)
  return status_json(row.head, row.likes, row.comments, row.reposts)
end

-- The row with one counter changed. The entry shows the new value before the hash has it.
local function with_counter_changed(row, counter, by)
  row[counter] = to_text(tonumber(row[counter]) + by)
  return row
end

-- What a repost or a quote shows of its original; nil if the viewer may not see it, null if it is deleted.
local function original_json(viewer, origin, least)
  local row = known_rows[origin] or read_status(origin)
  if not row then return 'null' end
  if status_visibility(viewer, row[2], row[6]) < least then return nil end
  return status_json(row[1], row[3], row[4], row[5])
end

-- A status's JSON as a viewer sees it, or nil. A plain repost shows nothing but its original, so it is hidden with it.
-- The values behind `least` are those of the array of read_status.
local function shown_json(viewer, least, head, uid, likes, comments, reposts, group, origin, wordless)
  if status_visibility(viewer, uid, group) < least then return nil end
  if origin then
    local original = original_json(viewer, origin, least)
    if not original and wordless then return nil end
    head = head .. ',"original":' .. (original or 'null')
  end
  return status_json(head, likes, comments, reposts)
end

local function visible_status_json(viewer, row, least)
  return shown_json(viewer, least, row.head, row.uid, row.likes, row.comments, row.reposts, row.group, row.origin,
    row.wordless)
end

-- A status's JSON if its visibility for the viewer is at least `least` (ON_REQUEST or VISIBLE), or nil.
local function find_visible_json(viewer, id, least)
  local row = read_status(id)
  return row and shown_json(viewer, least, unpack(row, 1, 8))
end

-- The row and the JSON of a status that the user reacts to; nil if it is unknown or hidden.
local function find_visible_status(viewer, id)
  local row = find_status(id)
  local json = row and visible_status_json(viewer, row, ON_REQUEST)
  if not json then return nil end
  return row, json
end
