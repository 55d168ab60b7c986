-- Posts a status, also as a reply, repost or quote. Adds it to timelines, or leaves a job for that. The script behind
-- this part replies.
-- ARGV: 3 author, 4 answered status, 5 reposted status, 6 group ('' for none), 7 message as JSON, 8 language, 9 JSON
-- members of the location, 10 JSON members of the attachments, 11 folded hashtags, each followed by a blank, 12 the id
-- and 13 the time (ms) that another site gave the status ('' for none), from 14 on the arguments of parts/mentions.lua.
-- Leaves `position`, `status` (its JSON), `fence` (of the fan-out job, '' if there is none), `people`, `lists` and
-- `asleep` (if there is a job, what first_readers returns).
local uid, in_reply_to, origin, group = ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local message, lang, where, more, tags = ARGV[7], ARGV[8], ARGV[9], ARGV[10], ARGV[11]
local foreign_id, foreign_ms = ARGV[12], tonumber(ARGV[13])

-- The answered status. A reply takes its group and its conversation.
local answered_row, conversation
if in_reply_to ~= '' then
  answered_row = find_visible_status(uid, in_reply_to)
  if not answered_row then return refuse('NOT_FOUND status in_reply_to') end
  if group ~= '' and group ~= answered_row.group then return refuse('ELSEWHERE group') end
  group = answered_row.group
  conversation = redis.call('HGET', KEY.status .. in_reply_to, 'conversation')
end
if group ~= '' then
  local place, within = find_visible_group(uid, group)
  if not place then
    return refuse('NOT_FOUND group group')
  elseif not within or (place.kind == 'announcement' and place.uid ~= uid) then
    return refuse('NOT_YOURS group group')
  end
end

-- The reposted status. A repost of a plain repost is one of the original. A plain repost has its original's language.
local original_row, shown = nil, ''
if origin ~= '' then
  original_row = find_visible_status(uid, origin)
  if original_row and original_row.wordless then
    original_row = find_visible_status(uid, original_row.origin)
  end
  if not original_row then
    return refuse('NOT_FOUND status origin')
  elseif original_row.group ~= group and original_row.group ~= '' then
    return refuse('ELSEWHERE origin')
  elseif original_row.uid ~= uid and redis.call('HGET', KEY.status .. original_row.id, 'audience') ~= PUBLIC
    and original_row.group == '' then
    return refuse('PROTECTED origin')
  elseif original_row.uid ~= uid and is_protected(original_row.uid) then
    return refuse('PROTECTED origin')
  end
  origin = original_row.id
  if message == '""' then lang = redis.call('HGET', KEY.status .. origin, 'lang') end
end

-- What filters and renderings use beside the status itself: its author, the answered login, the original's author.
local function filter_facts(author, answered_login, original)
  return '"author":' .. user_json(author) .. answered_login
    .. (original and ',"original_author":' .. user_json(find_user(original.uid)) or '')
end

-- Those facts by which filters match, packed. They are kept, so that a delete matches as its post did.
local function pack_facts(author, answered_login)
  local bio = author.card:match('"bio":(.*),"url":')
  return '\14' .. author.id .. '\3' .. author.login .. '"' .. (bio and bio ~= 'null' and ',"bio":' .. bio or '')
    .. format('\15%d\16%d\17%d}', author.followers, author.following, author.posts) .. answered_login
end

-- The JSON up to the counters and the original, packed as in parts/statuses.lua.
local function pack_head(id, posted, entities, conversation)
  local place = where == '"location":null,"place":null' and '\6' or '",' .. where .. '\7'
  local is_plain = in_reply_to == '' and origin == '' and group == '' and more == '"media":[],"meta":null'
  local links = is_plain and '\12' or ',"in_reply_to":' .. json_id_or_null(in_reply_to) .. ',"in_reply_to_uid":'
    .. json_id_or_null(answered_row and answered_row.uid or '') .. ',"origin":' .. json_id_or_null(origin) .. ','
    .. more .. ',"group":' .. json_id_or_null(group) .. ',"conversation":"'
  return '\1' .. id .. (foreign_id ~= '' and '","foreign_id":"' .. foreign_id or '') .. '\2' .. uid .. '\3'
    .. actor.login .. '\4' .. message .. '\5' .. posted .. place .. lang .. '\8'
    .. (entities == '{"mentions":[],"hashtags":[],"cashtags":[],"urls":[]}' and '\11' or entities) .. links
    .. conversation .. '"'
end

local wordless = origin ~= '' and message == '""'
local entities, mentioned = resolve_mentions(uid, 14)
local ms, seq, n = next_position()
local id = make_id(ms, seq)
conversation = conversation or id
if original_row then shown = embedded_json(with_counter_changed(original_row, 'reposts', 1)) end
local packed_head = pack_head(id, to_iso8601(foreign_ms or ms), entities, conversation)
local head = unpack_json(packed_head)
local status = status_json(head .. (original_row and ',"original":' .. shown or ''), '0', '0', '0')
local audience = group ~= '' and 'group:' .. group or actor.protected and 'followers:' .. uid or PUBLIC
local answered_login = answered_row and ',"reply_to_login":"' .. redis.call('HGET', KEY.status .. in_reply_to, 'login')
  .. '"' or ''
local body = '{"wire":{"status":' .. status .. '},"facts":{' .. filter_facts(actor, answered_login, original_row) .. '}}'
local position, posted = claim_entry('post', audience, body, ms, seq, n)
if not position then return posted end
if foreign_ms then posted = ARGV[13] end

-- What pages show stands first, because Redis searches a small hash from its start. What `head` has is kept again only
-- where scripts, of the earlier version too, read it by itself. The original is kept as it was at
-- posting, because a delete is matched by it even if the original is gone.
local plain = origin == '' and group == ''
local rest = uid .. ' ' .. group .. ' ' .. origin .. (wordless and ' 1' or ' 0')
local facts = pack_facts(actor, answered_login)
local fields = {'head', PACKED_STATUSES and packed_head or head, plain and 'plain' or 'rest', plain and uid or rest,
  'likes', '0', 'comments', '0', 'reposts', '0', 'uid', uid, 'audience', audience, 'login', actor.login, 'posted', posted,
  'conversation', conversation, 'lang', lang, 'facts', PACKED_STATUSES and facts or unpack_json(facts)}
local function add_field(name, value)
  local at = #fields
  fields[at + 1], fields[at + 2] = name, value
end
if answered_row then
  add_field('in_reply_to', in_reply_to)
  add_field('in_reply_to_uid', answered_row.uid)
end
if origin ~= '' then
  -- An earlier version of this server reads `wordless`, `group` and `origin` in the place of `rest`.
  if wordless then add_field('wordless', '1') end
  add_field('origin', origin)
  add_field('original', shown)
end
if #mentioned > 0 then add_field('mentioned', table.concat(mentioned, ' ')) end
if group ~= '' then add_field('group', group) end
if tags ~= '' then add_field('tags', tags) end
redis.call('HSET', KEY.status .. id, unpack(fields))

-- Most statuses are never answered, so a conversation has a set from its first answer on. The root enters with it.
if answered_row then
  redis.call('ZADD', KEY.replies .. in_reply_to, id, id)
  if in_reply_to == conversation then
    redis.call('ZADD', KEY.thread .. conversation, conversation, conversation, id, id)
  else
    redis.call('ZADD', KEY.thread .. conversation, id, id)
  end
end
if origin ~= '' then
  redis.call('HINCRBY', KEY.status .. origin, 'reposts', 1)
  redis.call('ZADD', KEY.reposts .. origin, id, id)
end
-- Mentions and tags are not capped, because hidden statuses would crowd out visible ones.
for _, who in ipairs(mentioned) do
  redis.call('ZADD', KEY.mentions .. who, id, id)
end

-- A status in a group enters no profile, no tag and no home timeline.
local fence, people, lists, asleep = '', {}, {}, {}
if group ~= '' then
  redis.call('ZADD', KEY.grouped .. group, id, id)
  redis.call('ZREMRANGEBYRANK', KEY.grouped .. group, 0, -(TIMELINE_MAX + 1))
else
  redis.call('ZADD', KEY.profile .. uid, id, id)
  for tag in tags:gmatch('%S+') do
    redis.call('ZADD', KEY.tag .. tag, id, id)
  end
  actor.posts = redis.call('HINCRBY', KEY.user .. uid, 'posts', 1)
  people, lists, asleep = first_readers(uid)
  if fit_in_step(people, lists) then
    add_in_step(id, uid, people, lists, asleep, ms)
    people, lists, asleep = {}, {}, {}
  else
    fence = enqueue_fan_out(id, uid, ms, people, lists)
  end
end

known_standing[uid] = {actor.protected and '1' or '0', '0'}

-- Notifies each user once, if the user may see the status. Only what a repost shows differs from user to user.
local function notify_if_visible(who, kind)
  local about
  if original_row then
    about = status_subject_json(who, id)
  elseif status_visibility(who, uid, group) == VISIBLE then
    about = ',"status":' .. status
  end
  if about then ms, seq, n = notify(who, kind, actor, id, about, ms, seq, n) end
end
if original_row then notify_if_visible(original_row.uid, wordless and 'repost' or 'quote') end
if answered_row then notify_if_visible(answered_row.uid, 'reply') end
for _, who in ipairs(mentioned) do
  if not (answered_row and answered_row.uid == who) then notify_if_visible(who, 'mention') end
end
