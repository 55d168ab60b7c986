-- Statuses: how they are stored and posted. edit.lua changes them, and removal.lua deletes them.
--
-- The hash of a status has one field `row` with all values that never change and that a page shows. A field for each of them
-- would take about three times the memory. The row is the JSON of the status from the login to the conversation, in which one
-- byte that JSON does not contain, a *mark*, stands for each text between two values. The names of the marks, and the texts
-- NO_…_JSON of the usual values, come from store/status_row.py.
--
-- Two samples, with a mark in angle brackets. Tests read them here. A usual status of the user ada, which is the first of its
-- conversation:
--
-- SAMPLE ada<LOGIN_END>"tea"<MESSAGE_END>2026-01-02T03:04:05.678Z<NO_GEO>en<NO_ENTITIES><NO_CONTEXT>
--
-- A status with all that a row can have. Another site gave it an id, and it answers in a group:
--
-- SAMPLE f-9<FOREIGN_ID_END>ada<LOGIN_END>"#tea"<MESSAGE_END>2026-01-02T03:04:05.678Z
-- <GEO_BEGIN>"location":{"lat":1.5,"lon":2.0},"place":null<GEO_END>en
-- <ENTITIES_BEGIN>{"mentions":[],"hashtags":[{"text":"tea","start":0,"end":4}],"cashtags":[],"urls":[]}<ENTITIES_END>
-- "in_reply_to":"5","in_reply_to_uid":"6","origin":null,"media":[],"meta":{"a":1},"group":"4"<CONTEXT_END>3
--
-- In Lua a status is a table with these values, all as text. find_status makes it of a stored status, and post_status and
-- claim.status_post of a new one. No other function sets a value of it, except with_counter_changed and those of edit.lua.
--
--   id, uid          ids of the status and of its author
--   login            of the author, at the time of posting
--   message          as JSON with its quotation marks. It is not stored as plain text too, which nobody reads.
--   posted           ISO 8601. If the status was edited, the members `edits` and `edited` follow (edit.lua).
--   geo              location and place as JSON members, '' for neither
--   lang             a BCP 47 tag
--   entities         as JSON, '' for none
--   context          JSON members from in_reply_to to group: what it refers to, attachments, group. '' if it has none.
--   conversation     id of the first status of the conversation; its own id if this is the first
--   foreign_id       '' unless another site gave the status an id
--   group            id of its group, '' for none
--   origin           id of the status that it reposts or quotes, nil for none
--   likes, comments, reposts   counters
--
-- row_text writes a row. find_status here and `expand` in store/reads/statuses.py make JSON of it.

-- Whether a status is a repost without a text of its own.
local function is_wordless(status)
  return status.origin and status.message == '""'
end

-- The JSON of a status. `original` is a JSON member that stands before the counters, or ''.
local function status_json(status, original)
  local foreign_id = status.foreign_id == '' and '' or '"foreign_id":"' .. status.foreign_id .. '",'
  return '{"id":"' .. status.id .. '",' .. foreign_id .. '"uid":"' .. status.uid .. '","login":"' .. status.login
    .. '","message":' .. status.message .. ',"posted":"' .. status.posted .. '",'
    .. (status.geo == '' and NO_GEO_JSON or status.geo) .. ',"lang":"' .. status.lang .. '","entities":'
    .. (status.entities == '' and NO_ENTITIES_JSON or status.entities) .. ','
    .. (status.context == '' and NO_CONTEXT_JSON or status.context) .. ',"conversation":"' .. status.conversation .. '"'
    .. original .. ',"likes":' .. status.likes .. ',"comments":' .. status.comments .. ',"reposts":' .. status.reposts .. '}'
end

-- A status's JSON inside something else, without its original. Entries use this form, because a user who may see a
-- quote may not be allowed to see what it quotes.
local function embedded_json(status)
  return status_json(status, '')
end

-- The value of the field `row`.
local function row_text(status)
  local foreign_id = status.foreign_id == '' and '' or status.foreign_id .. FOREIGN_ID_END
  return foreign_id .. status.login .. LOGIN_END .. status.message .. MESSAGE_END .. status.posted
    .. (status.geo == '' and NO_GEO or GEO_BEGIN .. status.geo .. GEO_END) .. status.lang
    .. (status.entities == '' and NO_ENTITIES or ENTITIES_BEGIN .. status.entities .. ENTITIES_END)
    .. (status.context == '' and NO_CONTEXT or status.context .. CONTEXT_END)
    .. (status.conversation == status.id and '' or status.conversation)
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

-- The stored status as the table that is described above, or nil if there is no such status.
local function find_status(id)
  local kept = redis.call('HMGET', KEY.status .. id, 'row', 'uid', 'likes', 'comments', 'reposts', 'group', 'origin')
  if not kept[1] then return nil end
  local text, foreign_id, geo, entities, context = kept[1], '', '', '', ''
  local login, at = cut(text, 1, LOGIN_END)
  local named = login:find(FOREIGN_ID_END, 1, true)
  if named then foreign_id, login = login:sub(1, named - 1), login:sub(named + 1) end
  local message, posted, lang, mark
  message, at = cut(text, at, MESSAGE_END)
  posted, at, mark = cut_at_either(text, at, NO_GEO, GEO_BEGIN)
  if mark == GEO_BEGIN then geo, at = cut(text, at, GEO_END) end
  lang, at, mark = cut_at_either(text, at, NO_ENTITIES, ENTITIES_BEGIN)
  if mark == ENTITIES_BEGIN then entities, at = cut(text, at, ENTITIES_END) end
  if text:sub(at, at) == NO_CONTEXT then at = at + 1 else context, at = cut(text, at, CONTEXT_END) end
  local conversation = text:sub(at)
  return {id = id, uid = kept[2], login = login, message = message, posted = posted, geo = geo, lang = lang,
    entities = entities, context = context, conversation = conversation == '' and id or conversation,
    foreign_id = foreign_id, group = kept[6] or '', origin = kept[7] or nil, likes = kept[3], comments = kept[4],
    reposts = kept[5]}
end

-- Changes one counter of a status that find_status returned, and returns this status. The entry of a write shows the new
-- value before the hash has it.
local function with_counter_changed(row, counter, by)
  row[counter] = to_text(tonumber(row[counter]) + by)
  return row
end

-- Whether a viewer may see a status at least as far as `least` says (ON_REQUEST or VISIBLE). For a repost or a quote also
-- returns its original, nil if that is deleted or hidden from the viewer. A repost without a text shows nothing but its
-- original, so it is hidden where its original is; if that is deleted, the repost stays. `author` is the author's row
-- (find_user), and `original` the original (find_status): a script that has read them already passes them.
local function can_see_status(viewer, row, least, author, original)
  if status_visibility(viewer, row.uid, row.group, author) < least then return false end
  if not row.origin then return true end
  original = original or find_status(row.origin)
  if not original then return true end
  if status_visibility(viewer, original.uid, original.group) >= least then return true, original end
  return not is_wordless(row)
end

-- The JSON of a status as a viewer sees it, or nil if the viewer may not see it. The arguments are those of can_see_status.
-- In a repost or a quote, the member `original` is null if the original is deleted or hidden from the viewer.
local function visible_status_json(viewer, row, least, author, original)
  local is_seen, seen_original = can_see_status(viewer, row, least, author, original)
  if not is_seen then return nil end
  if not row.origin then return embedded_json(row) end
  return status_json(row, ',"original":' .. (seen_original and embedded_json(seen_original) or 'null'))
end

-- The status (as find_status returns it) that the user may answer, repost or like; nil if it is unknown or hidden.
local function find_visible_status(viewer, id)
  local row = find_status(id)
  return row and can_see_status(viewer, row, ON_REQUEST) and row or nil
end

-- Refuses a user who may not post in a group.
local function require_right_to_post(uid, group_id)
  local group, is_member = find_visible_group(uid, group_id)
  if not group then refuse('NOT_FOUND group group') end
  if not is_member or (group.kind == 'announcement' and group.uid ~= uid) then refuse('NOT_YOURS group group') end
end

-- The status that a repost or quote in this group ('' for none) shows. Who reposts a repost without a text reposts its
-- original. Refuses the write if the user may not repost the status.
local function require_reposted(uid, id, group)
  local row = find_visible_status(uid, id)
  if row and is_wordless(row) then row = find_visible_status(uid, row.origin) end
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

-- The value `context` of a new status. `attachments` are JSON members, '' for none. See write_status for `refs`.
local function context_json(refs, attachments, group)
  local answered, original = refs.answered, refs.original
  if not answered and not original and attachments == '' and group == '' then return '' end
  return '"in_reply_to":' .. json_id_or_null(answered and answered.id or '') .. ',"in_reply_to_uid":'
    .. json_id_or_null(answered and answered.uid or '') .. ',"origin":' .. json_id_or_null(original and original.id or '')
    .. ',' .. (attachments == '' and NO_ATTACHMENTS_JSON or attachments) .. ',"group":' .. json_id_or_null(group)
end

-- Appends the entry of a new status and stores the status; ms, seq and n are its position. `append` is the function that
-- appends the entry: append_entry or claim_entry. `actor` is the author's row. `tags` are folded hashtags, each followed by
-- a blank. `refs` is what the status refers to, a table with these values:
--   answered    the status that it answers, as find_status returns it, or nil
--   original    the status that it reposts or quotes, likewise
--   mentioned   ids of the users whom it mentions
-- Returns the position of the entry as text, and the JSON of the status.
local function write_status(append, actor, status, tags, refs, ms, seq, n)
  local id, uid, group, answered, original = status.id, status.uid, status.group, refs.answered, refs.original
  local fields, shown_original, more_facts = {}, '', ''

  local function add_field(name, value)
    fields[#fields + 1], fields[#fields + 2] = name, value
  end

  if answered then
    more_facts = ',"reply_to_login":"' .. answered.login .. '"'
    add_field('in_reply_to', answered.id)
    add_field('in_reply_to_uid', answered.uid)
  end
  if original then
    local original_json = embedded_json(original)
    shown_original = ',"original":' .. original_json
    more_facts = more_facts .. ',"original_author":' .. user_json(find_user(original.uid))
    add_field('origin', original.id)
    add_field('original', original_json) -- as it was at posting, because a delete is matched by it
  end
  if #refs.mentioned > 0 then add_field('mentioned', table.concat(refs.mentioned, ' ')) end
  if group ~= '' then add_field('group', group) end
  if tags ~= '' and group == '' then add_field('tags', tags) end

  local json = status_json(status, shown_original)
  local audience = group ~= '' and 'group:' .. group or actor.protected and 'followers:' .. uid or PUBLIC
  local position = append('post', audience, '{"wire":{"status":' .. json .. '},"facts":{"author":' .. user_json(actor)
    .. more_facts .. '}}', ms, seq, n)
  redis.call('HSET', KEY.status .. id, 'row', row_text(status), 'uid', uid, 'likes', '0', 'comments', '0', 'reposts', '0',
    'audience', audience, 'facts', kept_facts(actor, answered and answered.login or ''), unpack(fields))
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

-- Adds a new status to the sets of what it refers to. See write_status for `refs`.
local function add_to_sets(status, refs)
  local id, group, answered, original = status.id, status.group, refs.answered, refs.original
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
  for _, uid in ipairs(refs.mentioned) do
    redis.call('ZADD', KEY.mentions .. uid, id, id)
  end
  if group ~= '' then
    redis.call('ZADD', KEY.grouped .. group, id, id)
    redis.call('ZREMRANGEBYRANK', KEY.grouped .. group, 0, -(TIMELINE_MAX + 1))
  end
end

-- Notifies the author of the original, the author of the answered status, and the mentioned users of a new status, except
-- users who may not see it. An answered author who is mentioned too gets only the notification of the answer. See
-- write_status for `refs`. ms, seq and n are the position of the entry that the script has appended last.
local function notify_of_status(actor, status, refs, ms, seq, n)
  local receivers, answered, original = {}, refs.answered, refs.original

  local function add_if_visible(uid, kind)
    local about = visible_status_json(uid, status, VISIBLE, actor, original)
    if not about then return end
    receivers[#receivers + 1] = {uid = uid, kind = kind, subject = status.id, about = ',"status":' .. about}
  end

  if original then add_if_visible(original.uid, is_wordless(status) and 'repost' or 'quote') end
  if answered then add_if_visible(answered.uid, 'reply') end
  for _, uid in ipairs(refs.mentioned) do
    if not (answered and answered.uid == uid) then add_if_visible(uid, 'mention') end
  end
  notify(actor, receivers, ms, seq, n)
end

-- Posts a status that may answer, repost, quote or mention, or stand in a group. `append` and `in_step` are as in
-- write_status and fan_out. `draft` is that of claim.status_refer. Returns the status as the table
-- described above, the position of its entry, its JSON, and what fan_out returns.
local function post_status(append, in_step, draft)
  local uid, group, lang, refs = draft.author, draft.group, draft.lang, {}
  local actor = require_active_user(uid)
  if draft.in_reply_to ~= '' then -- a reply takes the group and the conversation of what it answers
    refs.answered = find_visible_status(uid, draft.in_reply_to) or refuse('NOT_FOUND status in_reply_to')
    if group ~= '' and group ~= refs.answered.group then refuse('ELSEWHERE group') end
    group = refs.answered.group
  end
  if group ~= '' then require_right_to_post(uid, group) end
  if draft.origin ~= '' then
    refs.original = with_counter_changed(require_reposted(uid, draft.origin, group), 'reposts', 1)
    if draft.message == '""' then lang = refs.original.lang end
  end
  local entities, mentioned = resolve_mentions(uid)
  refs.mentioned = mentioned
  local ms, seq, n, has_sleepers = next_position()
  local id, posted = make_id(ms, seq), draft.foreign_ms == '' and time_text(ms, draft.second_ms, draft.second)
    or to_iso8601(tonumber(draft.foreign_ms))
  local status = {id = id, uid = uid, login = actor.login, message = draft.message, posted = posted, geo = draft.geo,
    lang = lang, entities = entities, context = context_json(refs, draft.attachments, group),
    conversation = refs.answered and refs.answered.conversation or id, foreign_id = draft.foreign_id, group = group,
    origin = refs.original and refs.original.id, likes = '0', comments = '0', reposts = '0'}
  local position, json = write_status(append, actor, status, draft.tags, refs, ms, seq, n)
  if refs.answered or refs.original or group ~= '' or #mentioned > 0 then
    add_to_sets(status, refs)
    if group == '' then actor.posts = to_text(actor.posts + 1) end
    notify_of_status(actor, status, refs, ms, seq, n)
  end
  return status, position, json, fan_out(in_step, status, ms, has_sleepers)
end

-- Posts a status that refers to nothing, as most do. It is a script of its own, because each function that a script has
-- costs time at each call, and this one needs half as many as claim.status_refer. Nearly all of its cost is that of its
-- commands. The arguments are the values of the draft of claim.status_refer, with `entities` as JSON ('' for none).
-- Reply: position; JSON of the status, fence of the fan-out job ('' for none), for a job what first_readers returns.
function claim.status_post(author, message, lang, geo, attachments, tags, second_ms, second,
    entities) --> json, fence, followers, lists, asleep
  local actor, ms, seq, n, has_sleepers = require_active_user(author), next_position()
  local id, context = make_id(ms, seq), ''
  if attachments ~= '' then context = NO_REFERENCES_JSON .. ',' .. attachments .. ',"group":null' end
  local status = {id = id, uid = author, login = actor.login, message = message, posted = time_text(ms, second_ms, second),
    geo = geo, lang = lang, entities = entities, context = context, conversation = id, foreign_id = '', group = '',
    likes = '0', comments = '0', reposts = '0'}
  local position, json = write_status(claim_entry, actor, status, tags, {mentioned = {}}, ms, seq, n)
  return {appended, position, json, fan_out(true, status, ms, has_sleepers)}
end

-- Posts a status that may refer to others. These are the values of the draft:
--
--   author                       id of the author
--   in_reply_to, origin, group   ids of what it answers and reposts, and of its group, '' for none
--   message, lang                as in a status
--   geo, attachments             JSON members of the location and of the attachments, '' for the usual
--   tags                         folded hashtags, each followed by a blank
--   foreign_id, foreign_ms       the id and the time (ms) that another site gave the status, '' for none
--   second_ms, second            what time_text needs
--
-- From REST on there is what resolve_mentions reads. Reply: as of claim.status_post.
function claim.status_refer(draft --[[author, in_reply_to, origin, group, message, lang, geo, attachments, tags, foreign_id,
    foreign_ms, second_ms, second]], ...) --> json, fence, followers, lists, asleep
  local _, position, json, fence, people, lists, asleep = post_status(claim_entry, true, draft)
  return {appended, position, json, fence, people, lists, asleep}
end
