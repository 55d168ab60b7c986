-- Talks: fixed sets of users who exchange direct messages. A user of a talk has accepted it, or has it as a request of a
-- stranger, or has refused it and has neither.
local MAX_UNANSWERED = 3

local function has_accepted(uid, id)
  return redis.call('ZSCORE', KEY.talks .. uid, id)
end

-- A request of a user who cannot contact this one does not count.
local function has_as_request(uid, id)
  local last = redis.call('ZSCORE', KEY.talk_requests .. uid, id)
  return last and can_contact(uid, redis.call('HGET', KEY.talk .. id, 'uid')) and last
end

-- Lets a user accept a talk, whose last message is `last`. Its opener is no stranger any more.
local function accept_talk(uid, id, last)
  redis.call('ZADD', KEY.talks .. uid, last, id)
  redis.call('ZREM', KEY.talk_requests .. uid, id)
  redis.call('ZREM', KEY.strangers .. uid, redis.call('HGET', KEY.talk .. id, 'uid'))
end

-- The users of a talk if this user takes part in it, or nil.
local function find_own_people(uid, id)
  if not has_accepted(uid, id) and not has_as_request(uid, id) then return nil end
  local people = {}
  for other in redis.call('HGET', KEY.talk .. id, 'people'):gmatch('%S+') do
    people[#people + 1] = other
  end
  return people
end

-- Opens a talk. Two users have only one talk with each other: opening it again returns it. The first log entry comes with
-- the first message, so the talk's id comes from the clock and needs no log number. For users who do not follow the one who
-- opens it, the talk is a request, until they answer it. Until then the same user cannot open another talk with them.
-- `name_json` is 'null' for none. From REST on there are the other users. Reply: id of a new talk, or `unchanged`; id of the
-- talk.
function deed.talk_open(uid, name_json, ...) --> id
  for at = REST, #ARGV do
    if not can_contact(uid, ARGV[at]) then refuse('NOT_FOUND user people') end
  end
  local pair, known
  if #ARGV == REST then
    local one, other = uid, ARGV[REST]
    if tonumber(one) > tonumber(other) then one, other = other, one end
    pair = KEY.pair .. one .. ':' .. other
    known = redis.call('GET', pair)
  end
  local knows = {}
  for at = REST, #ARGV do
    knows[at] = not ASK_STRANGERS or redis.call('ZSCORE', KEY.following .. ARGV[at], uid)
    if not known and not knows[at] and redis.call('ZSCORE', KEY.strangers .. ARGV[at], uid) then
      refuse('UNANSWERED talks people')
    end
  end
  if known then
    if not find_own_people(uid, known) then accept_talk(uid, known, known) end
    return keep_reply('unchanged', known)
  end
  local ms, seq = next_position()
  local id, people = make_id(ms, seq), {uid, unpack(ARGV, REST)}
  store_pair(ms, seq)
  redis.call('HSET', KEY.talk .. id, 'uid', uid, 'people', table.concat(people, ' '), 'name_json', name_json, 'created',
    to_text(ms))
  redis.call('ZADD', KEY.talks .. uid, id, id)
  for at = REST, #ARGV do
    redis.call('ZADD', (knows[at] and KEY.talks or KEY.talk_requests) .. ARGV[at], id, id)
    if not knows[at] then redis.call('ZADD', KEY.strangers .. ARGV[at], id, uid) end
  end
  if pair then redis.call('SET', pair, id) end
  return keep_reply(id, id)
end

-- Accepts or refuses a talk that a stranger opened ('accept', 'refuse'). A talk that is accepted already stays so. There is no
-- log entry. Reply: `answered` or `unchanged`.
function deed.talk_answer(uid, id, answer)
  if not find_own_people(uid, id) then refuse('NOT_FOUND talk id') end
  local last = has_as_request(uid, id)
  if not last then return keep_reply('unchanged') end
  if answer == 'accept' then
    accept_talk(uid, id, last)
  else
    redis.call('ZREM', KEY.talk_requests .. uid, id)
  end
  return keep_reply('answered')
end

-- Sends a message, which also accepts the talk. Of a talk of two, the other user must be one whom the sender can contact.
-- Reply: position.
function write.talk_send(uid, talk_id, message_json) --> json
  local actor, people = require_active_user(uid), find_own_people(uid, talk_id) or refuse('NOT_FOUND talk id')
  if #people == 2 then
    local other = people[1] == uid and people[2] or people[1]
    if not can_contact(uid, other) then refuse('NOT_FOUND talk id') end
  end
  local listeners, requested = {}, {}
  for _, other in ipairs(people) do
    if other == uid or has_accepted(other, talk_id) then
      listeners[#listeners + 1] = other
    elseif has_as_request(other, talk_id) then
      requested[#requested + 1] = other
    end
  end
  local count = redis.call('ZCARD', KEY.messages .. talk_id)
  if #listeners == 1 and count >= MAX_UNANSWERED then refuse('UNANSWERED talk id') end
  local ms, seq, n = next_position()
  local id = make_id(ms, seq)
  local json = '{"id":"' .. id .. '","talk":"' .. talk_id .. '","uid":"' .. uid .. '","login":"' .. actor.login
    .. '","message":' .. message_json .. ',"posted":"' .. to_iso8601(ms) .. '"}'
  local audience, body = 'users:' .. table.concat(listeners, ','), '{"wire":{"message":' .. json .. '}}'
  local position = append_entry('message', audience, body, ms, seq, n)
  redis.call('HSET', KEY.message .. id, 'talk', talk_id, 'uid', uid, 'json', json)
  redis.call('ZADD', KEY.messages .. talk_id, id, id)
  accept_talk(uid, talk_id, id)
  for _, other in ipairs(listeners) do
    redis.call('ZADD', KEY.talks .. other, id, talk_id)
  end
  if count < MAX_UNANSWERED then
    for _, other in ipairs(requested) do
      redis.call('ZADD', KEY.talk_requests .. other, id, talk_id)
    end
  end
  redis.call('HSET', KEY.marks .. talk_id, uid, id)
  return keep_reply(position, json)
end

-- Marks a talk as read up to a message. A message below the mark changes nothing. There is no log entry. Reply: the last
-- read message, after `unchanged ` if nothing changed.
function deed.talk_mark_read(uid, talk, id)
  if not find_own_people(uid, talk) then refuse('NOT_FOUND talk id') end
  local author = redis.call('ZSCORE', KEY.messages .. talk, id) and redis.call('HGET', KEY.message .. id, 'uid')
  -- Before the user has accepted it, only the first MAX_UNANSWERED messages are shown, so that strangers who know each
  -- other cannot write more by answering in the place of the user.
  local most = MAX_UNANSWERED - 1
  local last = not has_accepted(uid, talk) and redis.call('ZRANGE', KEY.messages .. talk, most, most)[1]
  local is_shown = author and (not last or tonumber(id) <= tonumber(last))
  if not is_shown or visibility_of_bits(relation_facts(uid, author) + DIRECT_MESSAGE + PARTICIPANT) == HIDDEN then
    refuse('NOT_FOUND message id')
  end
  local mark = redis.call('HGET', KEY.marks .. talk, uid)
  local is_newer = not mark or tonumber(id) > tonumber(mark)
  if is_newer then
    redis.call('HSET', KEY.marks .. talk, uid, id)
    mark = id
  end
  return keep_reply((is_newer and '' or 'unchanged ') .. mark)
end
