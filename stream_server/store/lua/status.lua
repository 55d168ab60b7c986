-- Statuses: how they are stored and posted. removal.lua deletes them.
--
-- The hash of a status has one field `row` with all values that never change and that a page shows. A field for each of them
-- would take about three times the memory. The row is the JSON of the status from the login to the conversation, in which one
-- byte that JSON does not contain, a *mark*, stands for each text between two values. The names of the marks, and the texts
-- NO_…_JSON of the usual values, come from store/status_row.py.
--
-- Two samples, with a mark in angle brackets. Tests read them here. A usual status of the user ada, which is the first of its
-- conversation:
--
-- SAMPLE ada<LOGIN_END>"tea"<MESSAGE_END>2026-01-02T03:04:05.678Z<NO_PLACE>en<NO_ENTITIES><NO_LINKS>
--
-- A status with all that a row can have. Another site gave it an id, and it answers in a group:
--
-- SAMPLE f-9<FOREIGN_ID_END>ada<LOGIN_END>"#tea"<MESSAGE_END>2026-01-02T03:04:05.678Z
-- <PLACE_BEGIN>"location":{"lat":1.5,"lon":2.0},"place":null<PLACE_END>en
-- <ENTITIES_BEGIN>{"mentions":[],"hashtags":[{"text":"tea","start":0,"end":4}],"cashtags":[],"urls":[]}<ENTITIES_END>
-- "in_reply_to":"5","in_reply_to_uid":"6","origin":null,"media":[],"meta":{"a":1},"group":"4"<LINKS_END>3
--
-- In Lua a status is a table with a name for each value:
--
--   id, uid          ids of the status and of its author
--   login            of the author, at the time of posting
--   message          as JSON with its quotation marks. It is not stored as plain text too, which nobody reads.
--   posted           ISO 8601
--   place            location and place as JSON members, '' for neither
--   lang             a BCP 47 tag
--   entities         as JSON, '' for none
--   links            what it refers to and its attachments, as JSON members from in_reply_to to group, '' for nothing
--   conversation     id of the first status of the conversation, '' if this is the first
--   foreign_id       '' unless another site gave the status an id
--   group            id of its group, '' for none
--
-- row_text writes a row. find_status here and `expand` in store/reads/statuses.py make JSON of it.

-- The JSON of a status. `tail` is what stands behind the conversation: the original and the counters, or nothing.
local function status_json(row, tail)
  return '{"id":"' .. row.id .. (row.foreign_id == '' and '","uid":"' or '","foreign_id":"' .. row.foreign_id .. '","uid":"')
    .. row.uid .. '","login":"' .. row.login .. '","message":' .. row.message .. ',"posted":"' .. row.posted .. '",'
    .. (row.place == '' and NO_PLACE_JSON or row.place) .. ',"lang":"' .. row.lang .. '","entities":'
    .. (row.entities == '' and NO_ENTITIES_JSON or row.entities) .. ',' .. (row.links == '' and NO_LINKS_JSON or row.links)
    .. ',"conversation":"' .. (row.conversation == '' and row.id or row.conversation) .. '"' .. tail
end

-- The value of the field `row`.
local function row_text(row)
  return (row.foreign_id == '' and row.login or row.foreign_id .. FOREIGN_ID_END .. row.login) .. LOGIN_END
    .. row.message .. MESSAGE_END .. row.posted .. (row.place == '' and NO_PLACE or PLACE_BEGIN .. row.place .. PLACE_END)
    .. row.lang .. (row.entities == '' and NO_ENTITIES or ENTITIES_BEGIN .. row.entities .. ENTITIES_END)
    .. (row.links == '' and NO_LINKS or row.links .. LINKS_END) .. row.conversation
end

-- The part of `text` from the index `at` up to the byte `mark`, and the index behind the mark. A pattern would take ten
-- times as long for a long text.
local function cut(text, at, mark)
  local last = text:find(mark, at, true)
  return text:sub(at, last - 1), last + 1
end

-- As cut, up to the first of two marks. Also returns which one it is.
local function cut_at_either(text, at, mark, other)
  local last = text:find('[' .. mark .. other .. ']', at)
  return text:sub(at, last - 1), last + 1, text:sub(last, last)
end

-- The stored status as the table that is described above, or nil if there is no such status. The table also has:
--   likes, comments, reposts   counters, as text
--   origin                     id of the status that it reposts or quotes, or nil
--   wordless                   whether it is a repost without a text of its own
--   head                       its JSON without original and counters
-- Its `conversation` is never ''.
local function find_status(id)
  local kept = redis.call('HMGET', KEY.status .. id, 'row', 'uid', 'likes', 'comments', 'reposts', 'group', 'origin')
  if not kept[1] then return nil end
  local text, foreign_id, place, entities, links = kept[1], '', '', '', ''
  local login, at = cut(text, 1, LOGIN_END)
  local named = login:find(FOREIGN_ID_END, 1, true)
  if named then foreign_id, login = login:sub(1, named - 1), login:sub(named + 1) end
  local message, posted, lang, mark
  message, at = cut(text, at, MESSAGE_END)
  posted, at, mark = cut_at_either(text, at, NO_PLACE, PLACE_BEGIN)
  if mark == PLACE_BEGIN then place, at = cut(text, at, PLACE_END) end
  lang, at, mark = cut_at_either(text, at, NO_ENTITIES, ENTITIES_BEGIN)
  if mark == ENTITIES_BEGIN then entities, at = cut(text, at, ENTITIES_END) end
  if text:sub(at, at) == NO_LINKS then at = at + 1 else links, at = cut(text, at, LINKS_END) end
  local conversation, origin = text:sub(at), kept[7] or nil
  local row = {id = id, uid = kept[2], login = login, message = message, posted = posted, place = place, lang = lang,
    entities = entities, links = links, conversation = conversation == '' and id or conversation, foreign_id = foreign_id,
    group = kept[6] or '', likes = kept[3], comments = kept[4], reposts = kept[5], origin = origin,
    wordless = origin and message == '""'}
  row.head = status_json(row, '')
  return row
end

-- A status's JSON inside something else, without its original. Entries use this form, because a user who may see a
-- quote may not be allowed to see what it quotes.
local function embedded_json(row)
  return row.head .. ',"likes":' .. row.likes .. ',"comments":' .. row.comments .. ',"reposts":' .. row.reposts .. '}'
end

-- Changes one counter of a status that find_status returned, and returns this status. The entry of a write shows the new
-- value before the hash has it.
local function with_counter_changed(row, counter, by)
  row[counter] = to_text(tonumber(row[counter]) + by)
  return row
end

-- The JSON of a status (a table of find_status) as a viewer sees it, or nil if the viewer may not see it at least as far as
-- `least` says (ON_REQUEST or VISIBLE). In a repost or a quote, `original` is null if the original is deleted or hidden from
-- the viewer. A repost without a text shows nothing but its original, so it is hidden with its original. `who` is the
-- author's row (find_user) if the script has it already.
local function visible_status_json(viewer, row, least, who)
  if status_visibility(viewer, row.uid, row.group, who) < least then return nil end
  if not row.origin then return embedded_json(row) end
  row.original = row.original or find_status(row.origin) -- once for all viewers of the row
  local original, shown = row.original, 'null'
  if original and status_visibility(viewer, original.uid, original.group) >= least then
    shown = embedded_json(original)
  elseif original and row.wordless then
    return nil
  end
  return row.head .. ',"original":' .. shown .. ',"likes":' .. row.likes .. ',"comments":' .. row.comments
    .. ',"reposts":' .. row.reposts .. '}'
end

-- The status (as find_status returns it) that the user may answer, repost or like; nil if it is unknown or hidden.
local function find_visible_status(viewer, id)
  local row = find_status(id)
  return row and visible_status_json(viewer, row, ON_REQUEST) and row
end

-- Refuses a user who may not post in a group.
local function require_right_to_post(uid, group)
  local place, within = find_visible_group(uid, group)
  if not place then refuse('NOT_FOUND group group') end
  if not within or (place.kind == 'announcement' and place.uid ~= uid) then refuse('NOT_YOURS group group') end
end

-- The status that a repost or quote in this group ('' for none) shows. Who reposts a repost without a text reposts its
-- original. Refuses the write if the user may not repost the status.
local function require_reposted(uid, id, group)
  local row = find_visible_status(uid, id)
  if row and row.wordless then row = find_visible_status(uid, row.origin) end
  if not row then refuse('NOT_FOUND status origin') end
  if row.group ~= group and row.group ~= '' then refuse('ELSEWHERE origin') end
  if row.uid == uid then return row end
  local is_open = row.group ~= '' or redis.call('HGET', KEY.status .. row.id, 'audience') == PUBLIC
  if not is_open or is_protected(row.uid) then refuse('PROTECTED origin') end
  return row
end

-- The time `ms` in ISO 8601. The process sends the text of the present second (`second`, up to the point before the
-- milliseconds, and `second_ms`, its ms since 1970), because to make this text costs a script more than any command of a post.
local function time_text(ms, second_ms, second)
  local rest = ms - second_ms
  if rest >= 0 and rest < 1000 then return second .. string.format('%03dZ', rest) end
  return to_iso8601(ms)
end

-- The member `links` of a new status: what it refers to and its attachments, as JSON members. `answered` and `original` are
-- statuses of find_status, or nil; `attachments` are JSON members, '' for none.
local function links_json(answered, original, attachments, group)
  if not answered and not original and attachments == '' and group == '' then return '' end
  return '"in_reply_to":' .. json_id_or_null(answered and answered.id or '') .. ',"in_reply_to_uid":'
    .. json_id_or_null(answered and answered.uid or '') .. ',"origin":' .. json_id_or_null(original and original.id or '')
    .. ',' .. (attachments == '' and NO_ATTACHMENTS_JSON or attachments) .. ',"group":' .. json_id_or_null(group)
end

-- Appends the entry of a new status and stores the status; ms, seq and n are its position. `append` is the function that
-- appends the entry: append_entry or claim_entry. `actor` is the author's row. `status` is a table as described above, with
-- more values:
--   tags      folded hashtags, each followed by a blank
--   fields    names and values for its hash, or nil
--   answered  the status that it answers, as find_status returns it, or nil
--   shown     its original as a JSON member behind the conversation, '' for none
--   facts     what filters and renderings use beside the status and its author: JSON members, '' for none
-- Returns the position of the entry as text, and the JSON of the status.
local function write_status(append, actor, status, ms, seq, n)
  local id, uid, group, tags = status.id, status.uid, status.group, status.tags
  local json = status_json(status, status.shown .. ',"likes":0,"comments":0,"reposts":0}')
  local audience = group ~= '' and 'group:' .. group or actor.protected and 'followers:' .. uid or PUBLIC
  local position = append('post', audience, '{"wire":{"status":' .. json .. '},"facts":{"author":' .. user_json(actor)
    .. status.facts .. '}}', ms, seq, n)
  local fields = status.fields or {}
  if tags ~= '' and group == '' then fields[#fields + 1], fields[#fields + 2] = 'tags', tags end
  redis.call('HSET', KEY.status .. id, 'row', row_text(status), 'uid', uid, 'likes', '0', 'comments', '0', 'reposts', '0',
    'audience', audience, 'facts', kept_facts(actor, status.answered and status.answered.login or ''), unpack(fields))
  -- A status in a group enters no profile and no tag: the pages of a profile must not depend on who reads it.
  if group ~= '' then return position, json end
  redis.call('ZADD', KEY.profile .. uid, id, id)
  redis.call('HINCRBY', KEY.user .. uid, 'posts', '1')
  if tags == '' then return position, json end
  for tag in tags:gmatch('%S+') do
    redis.call('ZADD', KEY.tag .. tag, id, id)
  end
  return position, json
end

-- Adds a new status, whose entry has the time `ms`, to timelines, or leaves a job for that. With `in_step`, the script may
-- change the timelines itself. Returns the fence of the job, '' for none; for a job also what first_readers returns.
local function fan_out(in_step, status, ms, has_sleepers)
  if status.group ~= '' then return '' end
  local people, lists, asleep = first_readers(status.uid, has_sleepers)
  if not in_step or not fit_in_step(people, lists) then
    return enqueue_fan_out(status.id, status.uid, ms, people, lists), people, lists, asleep
  end
  add_in_step(status.id, status.uid, people, lists, asleep, ms)
  return ''
end

-- Adds to a new status what write_status needs about the statuses and the users to which it refers. `mentioned` are ids of
-- users.
local function add_references(status, answered, original, mentioned)
  local fields = {}
  local function add(name, value)
    fields[#fields + 1], fields[#fields + 2] = name, value
  end

  status.answered, status.original, status.fields = answered, original, fields
  status.links = links_json(answered, original, status.attachments, status.group)
  if answered then
    status.conversation = answered.conversation
    status.facts = ',"reply_to_login":"' .. answered.login .. '"'
    add('in_reply_to', answered.id)
    add('in_reply_to_uid', answered.uid)
  end
  if original then
    status.shown = ',"original":' .. embedded_json(original)
    status.facts = status.facts .. ',"original_author":' .. user_json(find_user(original.uid))
    add('origin', original.id)
    add('original', embedded_json(original)) -- as it was at posting, because a delete is matched by it
  end
  if #mentioned > 0 then add('mentioned', table.concat(mentioned, ' ')) end
  if status.group ~= '' then add('group', status.group) end
end

-- Adds a new status to the sets of what it refers to.
local function add_to_sets(status, mentioned)
  local id, answered, original, group = status.id, status.answered, status.original, status.group
  if answered then
    -- Most statuses are never answered, so a conversation has a set from its first answer on. The root enters with it.
    local root = answered.conversation
    redis.call('ZADD', KEY.replies .. answered.id, id, id)
    if answered.id == root then redis.call('ZADD', KEY.thread .. root, root, root) end
    redis.call('ZADD', KEY.thread .. root, id, id)
  end
  if original then
    redis.call('HINCRBY', KEY.status .. original.id, 'reposts', 1)
    redis.call('ZADD', KEY.reposts .. original.id, id, id)
  end
  -- Mentions and tags are not capped, because hidden statuses would crowd out visible ones.
  for _, who in ipairs(mentioned) do
    redis.call('ZADD', KEY.mentions .. who, id, id)
  end
  if group ~= '' then
    redis.call('ZADD', KEY.grouped .. group, id, id)
    redis.call('ZREMRANGEBYRANK', KEY.grouped .. group, 0, -(TIMELINE_MAX + 1))
  end
end

-- Notifies the author of the original, the author of the answered status, and the mentioned users of a new status, except
-- users who may not see it. An answered author who is mentioned too gets only the notification of the answer. ms, seq and n
-- are the position of the entry that the script has appended last.
local function notify_of_status(actor, status, mentioned, ms, seq, n)
  local receivers, answered, original = {}, status.answered, status.original
  -- As find_status would return it. To read the new status back took 7 % of a post with a mention.
  status.likes, status.comments, status.reposts, status.head = '0', '0', '0', status_json(status, '')
  status.origin, status.wordless = original and original.id, status.message == '""'

  local function add_if_visible(who, kind)
    local about = visible_status_json(who, status, VISIBLE, actor)
    if not about then return end
    receivers[#receivers + 1] = {who = who, kind = kind, subject = status.id, about = ',"status":' .. about}
  end

  if original then add_if_visible(original.uid, status.wordless and 'repost' or 'quote') end
  if answered then add_if_visible(answered.uid, 'reply') end
  for _, who in ipairs(mentioned) do
    if not (answered and answered.uid == who) then add_if_visible(who, 'mention') end
  end
  notify(actor, receivers, ms, seq, n)
end

-- Posts a status that may answer, repost, quote or mention, or stand in a group. `append` and `in_step` are as in
-- write_status and fan_out. `draft` has the arguments of claim.status_refer by name. Returns the status as write_status takes
-- it, with its position and its JSON; and what fan_out returns.
local function post_status(append, in_step, draft)
  local uid, group, lang = draft.author, draft.group, draft.lang
  local actor, answered, original = require_active_user(uid), nil, nil
  if draft.in_reply_to ~= '' then -- a reply takes the group and the conversation of what it answers
    answered = find_visible_status(uid, draft.in_reply_to) or refuse('NOT_FOUND status in_reply_to')
    if group ~= '' and group ~= answered.group then refuse('ELSEWHERE group') end
    group = answered.group
  end
  if group ~= '' then require_right_to_post(uid, group) end
  if draft.origin ~= '' then
    original = require_reposted(uid, draft.origin, group)
    if draft.message == '""' then lang = original.lang end
    with_counter_changed(original, 'reposts', 1)
  end
  local entities, mentioned = resolve_mentions(uid)
  local ms, seq, n, has_sleepers = next_position()
  local posted = draft.foreign_ms == '' and time_text(ms, draft.second_ms, draft.second)
    or to_iso8601(tonumber(draft.foreign_ms))
  local status = {id = make_id(ms, seq), uid = uid, login = actor.login, message = draft.message, posted = posted,
    place = draft.place, lang = lang, entities = entities, attachments = draft.attachments, conversation = '',
    foreign_id = draft.foreign_id, group = group, tags = draft.tags, shown = '', facts = ''}
  add_references(status, answered, original, mentioned)
  status.position, status.json = write_status(append, actor, status, ms, seq, n)
  if answered or original or group ~= '' or #mentioned > 0 then
    add_to_sets(status, mentioned)
    if group == '' then actor.posts = to_text(actor.posts + 1) end
    notify_of_status(actor, status, mentioned, ms, seq, n)
  end
  return status, fan_out(in_step, status, ms, has_sleepers)
end

-- Posts a status that refers to nothing, as most do. It is a script of its own, because each function that a script has
-- costs time at each call, and this one needs half as many as claim.status_refer. Nearly all of its cost is that of its
-- commands. The arguments are as of claim.status_refer, with `entities` as JSON ('' for none).
-- Reply: position; JSON of the status, fence of the fan-out job ('' for none), for a job what first_readers returns.
function claim.status_post(author, message, lang, place, attachments, tags, second_ms, second,
    entities) --> json, fence, followers, lists, asleep
  local actor, ms, seq, n, has_sleepers = require_active_user(author), next_position()
  local status = {id = make_id(ms, seq), uid = author, login = actor.login, message = message,
    posted = time_text(ms, second_ms, second), place = place, lang = lang, entities = entities,
    links = attachments == '' and '' or NO_REFERENCES_JSON .. ',' .. attachments .. ',"group":null', conversation = '',
    foreign_id = '', group = '', tags = tags, shown = '', facts = ''}
  local position, json = write_status(claim_entry, actor, status, ms, seq, n)
  return {appended, position, json, fan_out(true, status, ms, has_sleepers)}
end

-- Posts a status that may refer to others. Arguments: author; answered status, reposted status and group ('' for none);
-- message as JSON, language; JSON members of the location and of the attachments ('' for the usual); folded hashtags, each
-- followed by a blank; the id and the time (ms) that another site gave the status ('' for none); what time_text needs. From
-- REST on there is what resolve_mentions reads. Reply: as of claim.status_post.
function claim.status_refer(author, in_reply_to, origin, group, message, lang, place, attachments, tags, foreign_id,
    foreign_ms, second_ms, second, ...) --> json, fence, followers, lists, asleep
  local status, fence, people, lists, asleep = post_status(claim_entry, true, {author = author, in_reply_to = in_reply_to,
    origin = origin, group = group, message = message, lang = lang, place = place, attachments = attachments, tags = tags,
    foreign_id = foreign_id, foreign_ms = foreign_ms, second_ms = second_ms, second = second})
  return {appended, status.position, status.json, fence, people, lists, asleep}
end
