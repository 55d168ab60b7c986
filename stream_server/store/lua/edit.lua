-- Edits: a status gets other values, and its place in timelines, sets and conversations stays.
--
-- The hash of a status that was edited has also the field `versions`: its earlier versions as JSON, the oldest first, each
-- followed by VERSION_END. A delete is matched by them too, because clients may still have one of them. KEY.edited has the
-- status, scored by the id of the entry of its last edit, as long as the log may have it: a replay shows this version.
local VERSION_END = '\1'

-- How many bytes of earlier versions are kept. If they are more, the first and the last ones stay: the first is what most
-- clients got.
local MAX_VERSIONS_BYTES = 8192

-- Refuses an edit by a user who may not change the status now. `row` is the status, or nil. With `max_age_ms` ('' for any
-- age), it must not be older. A repost without a text has nothing of its own that could change.
local function require_editable(uid, id, row, max_age_ms)
  if not row or row.uid ~= uid and not find_visible_status(uid, id) then refuse('NOT_FOUND status') end
  if row.uid ~= uid then refuse('NOT_YOURS status') end
  if is_wordless(row) then refuse('WORDLESS origin') end
  if row.group ~= '' then require_right_to_post(uid, row.group) end
  local age = now_ms() - EPOCH_MS - math.floor(tonumber(id) / 4096)
  if max_age_ms ~= '' and age > tonumber(max_age_ms) then refuse('TOO_LATE status') end
end

-- The status as it is after a change, or nil if nothing changes. `change` is that of write.status_edit. Its
-- entities are those of before.
local function changed_status(row, change)
  local new = setmetatable({}, {__index = row})
  if change.message ~= '' and change.message ~= row.message then
    new.message, new.lang = change.message, change.detected
  end
  if change.lang ~= '' then new.lang = change.lang end
  local location, place = row.geo:match('^"location":(.-),"place":(.*)$')
  location = change.location ~= '' and change.location or location or 'null'
  place = change.place ~= '' and change.place or place or 'null'
  local is_placed = location ~= 'null' or place ~= 'null'
  new.geo = is_placed and '"location":' .. location .. ',"place":' .. place or ''
  -- No JSON of media has the name of a member that follows it. What stands in `meta` may have the name `group`, but the
  -- last one is that of the status.
  local context = row.context == '' and NO_CONTEXT_JSON or row.context
  local refs, media, meta, group = context:match('^(.-),"media":(.-),"meta":(.*),"group":(.-)$')
  context = refs .. ',"media":' .. (change.media ~= '' and change.media or media) .. ',"meta":'
    .. (change.meta ~= '' and change.meta or meta) .. ',"group":' .. group
  new.context = context == NO_CONTEXT_JSON and '' or context
  local is_same = new.message == row.message and new.lang == row.lang and new.geo == row.geo
    and new.context == row.context
  return not is_same and new or nil
end

-- The values of `posted` after one more edit, at the time `ms`: the number of the edits and the time of the last one stand
-- behind the time of posting as JSON members, and a status that was never edited has neither.
local function posted_and_edited(posted, ms)
  local count = tonumber(posted:match('"edits":(%d+)') or '0') + 1
  return posted:sub(1, #'2026-01-02T03:04:05.678Z') .. '","edits":' .. to_text(count) .. ',"edited":"' .. to_iso8601(ms)
end

-- Calls `part` for each word of one text that another does not have. Words have blanks between them.
local function each_other_word(text, other, part)
  local known = {}
  for word in other:gmatch('%S+') do known[word] = true end
  for word in text:gmatch('%S+') do
    if not known[word] then part(word) end
  end
end

-- Puts a status into the timelines of its new tags and the sets of newly mentioned users, and takes it out of the others.
-- Returns the ids of the newly mentioned users. All four texts are as the hash of the status has them.
local function move_in_sets(row, was_mentioned, mentioned, had_tags, tags)
  local id, added = row.id, {}
  each_other_word(was_mentioned, mentioned, function(uid)
    withdraw_notification(uid, 'mention', row.uid, id)
    redis.call('ZREM', KEY.mentions .. uid, id)
  end)
  each_other_word(mentioned, was_mentioned, function(uid)
    redis.call('ZADD', KEY.mentions .. uid, id, id)
    added[#added + 1] = uid
  end)
  if row.group ~= '' then return added end
  each_other_word(had_tags, tags, function(tag) redis.call('ZREM', KEY.tag .. tag, id) end)
  each_other_word(tags, had_tags, function(tag) redis.call('ZADD', KEY.tag .. tag, id, id) end)
  return added
end

-- The field `versions` with one more version.
local function with_version(versions, json)
  local kept, size = {}, 0
  for version in (versions .. json .. VERSION_END):gmatch('[^' .. VERSION_END .. ']+') do
    kept[#kept + 1], size = version, size + #version
  end
  while size > MAX_VERSIONS_BYTES and #kept > 2 do
    size = size - #table.remove(kept, 2)
  end
  return table.concat(kept, VERSION_END) .. VERSION_END
end

-- Edits a status of `actor` (the author's row): `row` becomes `new`, as changed_status returns it. `change` is that of
-- write.status_edit. The entry shows the new version, and its facts have the old one: it goes to all whom either can reach.
-- Only users who were not mentioned before are notified. Returns the position of the entry as text, and the JSON of the
-- status.
local function edit_status(actor, row, new, change)
  local id, uid = row.id, row.uid
  local kept = redis.call('HMGET', KEY.status .. id, 'mentioned', 'tags', 'original', 'facts', 'audience', 'versions',
    'in_reply_to_uid')
  local was_mentioned, had_tags = kept[1] or '', kept[2] or ''
  local mentioned, tags = was_mentioned, had_tags
  if new.message ~= row.message then
    local entities, ids = resolve_mentions(uid)
    new.entities, mentioned = entities == NO_ENTITIES_JSON and '' or entities, table.concat(ids, ' ')
    tags = row.group == '' and change.tags or ''
  end
  local ms, seq, n = next_position()
  new.posted = posted_and_edited(row.posted, ms)
  local original = row.origin and find_status(row.origin)
  local shown = row.origin and ',"original":' .. (original and embedded_json(original) or 'null') or ''
  local json = status_json(new, shown)
  local before = status_json(row, kept[3] and ',"original":' .. kept[3] or '')
  local position, now = append_entry('edit', removal_audience(kept[5], id, uid, uid), '{"wire":{"status":' .. json
    .. '},"facts":{' .. kept_facts_json(row, kept[4]) .. ',"before":[' .. before .. ']}}', ms, seq, n)
  redis.call('HSET', KEY.status .. id, 'row', row_text(new), 'mentioned', mentioned, 'tags', tags, 'touched', now,
    'versions', with_version(kept[6] or '', before))
  redis.call('ZADD', KEY.edited, make_id(ms, seq), id)
  local receivers = {}
  for _, other in ipairs(move_in_sets(row, was_mentioned, mentioned, had_tags, tags)) do
    local about = other ~= kept[7] and visible_status_json(other, new, VISIBLE, actor, original)
    if about then
      receivers[#receivers + 1] = {uid = other, kind = 'mention', subject = id, about = ',"status":' .. about}
    end
  end
  notify(actor, receivers, ms, seq, n)
  return position, json
end

-- Changes a status of the user. In the change, the values from `message` to `meta` are JSON, and '' leaves a value as it is.
-- `lang` is plain text; without it, a new message has the language `detected`. `tags` are the folded hashtags of the
-- message, each followed by a blank. From REST on there is what resolve_mentions reads. Reply: position or `unchanged`.
function write.status_edit(uid, id, max_age_ms, change --[[message, detected, lang, location, place, media, meta, tags]],
    ...) --> json
  local actor, row = require_active_user(uid), find_status(id)
  require_editable(uid, id, row, max_age_ms)
  local new = changed_status(row, change)
  if not new then return keep_reply('unchanged', (visible_status_json(uid, row, ON_REQUEST))) end
  return keep_reply(edit_status(actor, row, new, change))
end
