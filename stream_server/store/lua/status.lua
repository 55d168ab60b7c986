-- Statuses: how they are stored and posted. removal.lua deletes them.
--
-- The hash of a status has one field `row` with all values that never change and that a page shows. A field for each of them
-- would take about three times the memory. The row is the JSON of the status from the login to the conversation, in which one
-- byte that JSON does not contain stands for each text between two values. The row of a usual status of the user ada:
--
--   ada <1> "tea" <2> 2026-01-02T03:04:05.678Z <3> en <6> <14>          (without the blanks)
--
-- The values and the bytes behind them, in their order:
--
--   foreign id      16, only if another site gave the status an id
--   login            1
--   message          2   as JSON with its quotation marks. It is not stored as plain text too, which nobody reads.
--   time of posting  3 for USUAL_PLACE; or 4, then location and place as JSON members, then 5
--   language         6 for USUAL_ENTITIES; or 7, then the entities as JSON, then 8
--   links           14 instead of USUAL_LINKS; or 15 behind them as JSON members (in_reply_to to group)
--   conversation     nothing if the status is the first of its own conversation
--
-- row_text writes a row. find_status here and `expand` in store/reads/statuses.py make JSON of it.
local USUAL_PLACE = '"location":null,"place":null'
local USUAL_ENTITIES = '{"mentions":[],"hashtags":[],"cashtags":[],"urls":[]}'
local NO_REACTIONS = ',"likes":0,"comments":0,"reposts":0}'
local USUAL_ATTACHMENTS = '"media":[],"meta":null'
local USUAL_LINKS = '"in_reply_to":null,"in_reply_to_uid":null,"origin":null,"media":[],"meta":null,"group":null'

-- The JSON of a status. `tail` is what stands behind the conversation: the original and the counters, or nothing.
local function status_json(id, uid, login, message, posted, place, lang, entities, links, conversation, foreign_id, tail)
  return '{"id":"' .. id .. (foreign_id == '' and '","uid":"' or '","foreign_id":"' .. foreign_id .. '","uid":"') .. uid
    .. '","login":"' .. login .. '","message":' .. message .. ',"posted":"' .. posted .. '",'
    .. (place == '' and USUAL_PLACE or place) .. ',"lang":"' .. lang .. '","entities":'
    .. (entities == '' and USUAL_ENTITIES or entities) .. ',' .. (links == '' and USUAL_LINKS or links)
    .. ',"conversation":"' .. (conversation == '' and id or conversation) .. '"' .. tail
end

-- The value of the field `row`.
local function row_text(login, message, posted, place, lang, entities, links, conversation, foreign_id)
  return (foreign_id == '' and login or foreign_id .. '\16' .. login) .. '\1' .. message .. '\2' .. posted
    .. (place == '' and '\3' or '\4' .. place .. '\5') .. lang .. (entities == '' and '\6' or '\7' .. entities .. '\8')
    .. (links == '' and '\14' or links .. '\15') .. conversation
end

-- The part of `text` from the index `at` up to the byte `mark`, and the index behind the mark. A pattern would take ten
-- times as long for a long text.
local function cut(text, at, mark)
  local last = text:find(mark, at, true)
  return text:sub(at, last - 1), last + 1
end

-- The stored status as a table with a name for each value, or nil if there is no such status. `group` is '' for a status
-- outside of groups. `origin` is the id of the status that it reposts or quotes, or nil. `wordless` says that it is a repost
-- without a text of its own. `head` is its JSON without original and counters.
local function find_status(id)
  local kept = redis.call('HMGET', KEY.status .. id, 'row', 'uid', 'likes', 'comments', 'reposts', 'group', 'origin')
  if not kept[1] then return nil end
  local row, place, entities, links, foreign_id, mark = kept[1], '', '', '', '', ''
  local login, at = cut(row, 1, '\1')
  local message, posted, lang
  message, at = cut(row, at, '\2')
  posted, mark, at = row:match('^([^\3\4]*)(.)()', at)
  if mark == '\4' then place, at = cut(row, at, '\5') end
  lang, mark, at = row:match('^([^\6\7]*)(.)()', at)
  if mark == '\7' then entities, at = cut(row, at, '\8') end
  if row:byte(at) == 14 then at = at + 1 else links, at = cut(row, at, '\15') end
  local conversation, named = row:sub(at), login:find('\16', 1, true)
  if named then foreign_id, login = login:sub(1, named - 1), login:sub(named + 1) end
  return {id = id, uid = kept[2], likes = kept[3], comments = kept[4], reposts = kept[5], group = kept[6] or '',
    origin = kept[7] or nil, wordless = kept[7] and message == '""', login = login, lang = lang,
    conversation = conversation == '' and id or conversation, foreign_id = foreign_id, head = status_json(id, kept[2],
    login, message, posted, place, lang, entities, links, conversation, foreign_id, '')}
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

-- Appends the entry of a new status, stores the status, and adds it to timelines or leaves a job for that. `append` is the
-- function that appends the entry: append_entry or claim_entry. With `in_step`, the script may change the timelines itself.
-- `actor` is the author's row. `refers` is nil for a status that refers to nothing, else what find_references returns. The
-- other arguments are as in claim.status_refer, with `entities` as JSON.
-- Returns ten values: the position of the entry as text; the status's id and JSON; ms, seq and n of the position as numbers;
-- the fence of the fan-out job, '' if the script changed the timelines itself; for a job what first_readers returns.
local function write_status(append, in_step, actor, refers, group, message, lang, place, attachments, tags, entities,
    foreign_id, foreign_ms, second_ms, second)
  local uid, ms, seq, n, has_sleepers = actor.id, next_position()
  local id, links, conversation, shown, facts = make_id(ms, seq), '', '', '', ''
  local posted = foreign_ms == '' and time_text(ms, second_ms, second) or to_iso8601(tonumber(foreign_ms))
  if refers then
    links, conversation, shown, facts = refers.links, refers.conversation, refers.shown, refers.facts
  elseif attachments ~= '' then
    links = '"in_reply_to":null,"in_reply_to_uid":null,"origin":null,' .. attachments .. ',"group":null'
  end
  local status = status_json(id, uid, actor.login, message, posted, place, lang, entities, links, conversation, foreign_id,
    shown .. NO_REACTIONS)
  local audience = group ~= '' and 'group:' .. group or actor.protected and 'followers:' .. uid or PUBLIC
  -- What filters and renderings use beside the status itself: its author, the answered login, the original's author.
  local position = append('post', audience, '{"wire":{"status":' .. status .. '},"facts":{"author":'
    .. user_json(actor) .. facts .. '}}', ms, seq, n)
  local fields = refers and refers.fields or {}
  if tags ~= '' and group == '' then fields[#fields + 1], fields[#fields + 2] = 'tags', tags end
  redis.call('HSET', KEY.status .. id, 'row', row_text(actor.login, message, posted, place, lang, entities, links,
    conversation, foreign_id), 'uid', uid, 'likes', '0', 'comments', '0', 'reposts', '0', 'audience', audience, 'facts',
    kept_facts(actor, refers and refers.login or ''), unpack(fields))
  if group ~= '' then return position, id, status, ms, seq, n, '' end
  redis.call('ZADD', KEY.profile .. uid, id, id)
  redis.call('HINCRBY', KEY.user .. uid, 'posts', 1)
  for tag in tags:gmatch('%S+') do
    redis.call('ZADD', KEY.tag .. tag, id, id)
  end
  local people, lists, asleep = first_readers(uid, has_sleepers)
  if not in_step or not fit_in_step(people, lists) then
    return position, id, status, ms, seq, n, enqueue_fan_out(id, uid, ms, people, lists), people, lists, asleep
  end
  add_in_step(id, uid, people, lists, asleep, ms)
  return position, id, status, ms, seq, n, ''
end

-- What a new status refers to, as write_status takes it: `links`, `conversation`, `shown` and `facts` are parts of its JSON
-- and of its entry, `login` is that of the answered author, and `fields` are names and values for its hash. `answered` and
-- `original` are statuses of find_status, or nil. `mentioned` are ids of users.
local function find_references(answered, original, group, attachments, mentioned)
  local found = {links = '"in_reply_to":' .. json_id_or_null(answered and answered.id or '') .. ',"in_reply_to_uid":'
    .. json_id_or_null(answered and answered.uid or '') .. ',"origin":' .. json_id_or_null(original and original.id or '')
    .. ',' .. (attachments == '' and USUAL_ATTACHMENTS or attachments) .. ',"group":' .. json_id_or_null(group),
    conversation = '', shown = '', facts = '', login = '', fields = {}}
  if answered then
    found.conversation, found.login = answered.conversation, answered.login
    found.facts = ',"reply_to_login":"' .. answered.login .. '"'
    found.fields = {'in_reply_to', answered.id, 'in_reply_to_uid', answered.uid}
  end
  local function add(name, value)
    found.fields[#found.fields + 1], found.fields[#found.fields + 2] = name, value
  end
  if original then
    found.shown = ',"original":' .. embedded_json(original)
    found.facts = found.facts .. ',"original_author":' .. user_json(find_user(original.uid))
    add('origin', original.id)
    add('original', embedded_json(original)) -- as it was at posting, because a delete is matched by it
  end
  if #mentioned > 0 then add('mentioned', table.concat(mentioned, ' ')) end
  if group ~= '' then add('group', group) end
  return found
end

-- Adds a new status to the sets of what it refers to.
local function add_to_sets(id, answered, original, group, mentioned)
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
  -- A status in a group enters no profile and no tag: the pages of a profile must not depend on who reads it.
  if group ~= '' then
    redis.call('ZADD', KEY.grouped .. group, id, id)
    redis.call('ZREMRANGEBYRANK', KEY.grouped .. group, 0, -(TIMELINE_MAX + 1))
  end
end

-- Notifies the author of the original, the author of the answered status, and the mentioned users of a new status, except
-- users who may not see it. An answered author who is mentioned too gets only the notification of the answer. ms, seq and n
-- are the position of the entry that the script has appended last.
local function notify_of_status(actor, row, answered, original, mentioned, ms, seq, n)
  local receivers = {}
  local function add_if_visible(who, kind)
    local about = visible_status_json(who, row, VISIBLE, actor)
    if not about then return end
    receivers[#receivers + 1] = {who = who, kind = kind, subject = row.id, about = ',"status":' .. about}
  end
  if original then add_if_visible(original.uid, row.wordless and 'repost' or 'quote') end
  if answered then add_if_visible(answered.uid, 'reply') end
  for _, who in ipairs(mentioned) do
    if not (answered and answered.uid == who) then add_if_visible(who, 'mention') end
  end
  notify(actor, receivers, ms, seq, n)
end

-- Posts a status that may answer, repost, quote or mention, or stand in a group. `append` and `in_step` are as in
-- write_status, the other arguments as in claim.status_refer. Returns the position, the status's JSON and id, and the last
-- four values of write_status.
local function post_status(append, in_step, uid, in_reply_to, origin, group, message, lang, place, attachments, tags,
    foreign_id, foreign_ms, second_ms, second)
  local actor, answered, original = require_active_user(uid), nil, nil
  if in_reply_to ~= '' then -- a reply takes the group and the conversation of what it answers
    answered = find_visible_status(uid, in_reply_to) or refuse('NOT_FOUND status in_reply_to')
    if group ~= '' and group ~= answered.group then refuse('ELSEWHERE group') end
    group = answered.group
  end
  if group ~= '' then require_right_to_post(uid, group) end
  if origin ~= '' then
    original = require_reposted(uid, origin, group)
    if message == '""' then lang = original.lang end
    with_counter_changed(original, 'reposts', 1)
  end
  local entities, mentioned = resolve_mentions(uid, 16)
  local refers
  if answered or original or group ~= '' or #mentioned > 0 then
    refers = find_references(answered, original, group, attachments, mentioned)
  end
  local position, id, status, ms, seq, n, fence, people, lists, asleep = write_status(append, in_step, actor, refers, group,
    message, lang, place, attachments, tags, entities, foreign_id, foreign_ms, second_ms, second)
  if refers then
    add_to_sets(id, answered, original, group, mentioned)
    if group == '' then actor.posts = to_text(actor.posts + 1) end
    -- As find_status would return it. To read the new status back took 7 % of a post with a mention.
    local row = {id = id, uid = uid, group = group, origin = original and original.id, original = original,
      wordless = message == '""', likes = '0', comments = '0', reposts = '0', head = status:sub(1, -1 - #refers.shown - #NO_REACTIONS)}
    notify_of_status(actor, row, answered, original, mentioned, ms, seq, n)
  end
  return position, status, id, fence, people, lists, asleep
end

-- Posts a status that refers to nothing, as most do. It is a script of its own, because each function that a script has
-- costs time at each call, and this one needs half as many as claim.status_refer. Nearly all of its cost is that of its
-- commands. The arguments are as of claim.status_refer. Reply: position; JSON of the status, fence of the fan-out job ('' for none), for a job what
-- first_readers returns.
function claim.status_post(uid, message, lang, place, attachments, tags, second_ms, second, entities)
  local position, _, status, _, _, _, fence, people, lists, asleep = write_status(claim_entry, true,
    require_active_user(uid), nil, '', message, lang, place, attachments, tags, entities, '', '', second_ms, second)
  return {appended, position, status, fence, people, lists, asleep}
end

-- Posts a status that may refer to others. Arguments: author; answered status, reposted status and group ('' for none);
-- message as JSON, language; JSON members of the location and of the attachments ('' for the usual); folded hashtags, each
-- followed by a blank; the id and the time (ms) that another site gave the status ('' for none); what time_text needs. These
-- 13 arguments are ARGV[3] to ARGV[15]. From ARGV[16] on stands what resolve_mentions reads. Reply: as of claim.status_post.
function claim.status_refer(uid, in_reply_to, origin, group, message, lang, place, attachments, tags, foreign_id,
    foreign_ms, second_ms, second)
  local position, status, _, fence, people, lists, asleep = post_status(claim_entry, true, uid, in_reply_to, origin, group,
    message, lang, place, attachments, tags, foreign_id, foreign_ms, second_ms, second)
  return {appended, position, status, fence, people, lists, asleep}
end
