local MAX_UNREAD, MESSAGES_SEARCHED, MAX_UNANSWERED = 100, 64, 3

local function split_uids(people)
  local found = {}
  for uid in people:gmatch('%S+') do
    found[#found + 1] = uid
  end
  return found
end

-- A user of a talk has accepted it, or has it as a request of a stranger, or has refused it and has neither.
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

-- The id of the last message that a user sees of a talk. Before the user has accepted it, only the first MAX_UNANSWERED
-- are shown, so that strangers who know each other cannot write more by answering in the place of the user.
local function last_shown(uid, id)
  local held = not has_accepted(uid, id) and redis.call('ZRANGE', KEY.messages .. id, MAX_UNANSWERED - 1, MAX_UNANSWERED - 1)
  return held and held[1] or '+inf'
end

local function is_shown(message, last)
  return last == '+inf' or tonumber(message) <= tonumber(last)
end

-- A talk if this user takes part in it, or nil.
local function find_own_talk(uid, id)
  if not has_accepted(uid, id) and not has_as_request(uid, id) then return nil end
  local kept = redis.call('HMGET', KEY.talk .. id, 'people', 'name_json', 'created')
  return {id = id, people = split_uids(kept[1]), name_json = kept[2], created = tonumber(kept[3])}
end

-- The visibility of a message for a user of the talk. Reading a talk is a request, so ON_REQUEST suffices.
local function message_visibility(viewer, author)
  return visibility_of_bits(relation_facts(viewer, author) + DIRECT + PARTY)
end

-- The JSON of the newest message that the viewer sees among the newest MESSAGES_SEARCHED, or nil.
local function last_visible_message_json(viewer, id)
  local newest = redis.call('ZRANGE', KEY.messages .. id, last_shown(viewer, id), '-inf', 'BYSCORE', 'REV', 'LIMIT', 0,
    MESSAGES_SEARCHED)
  for _, message in ipairs(newest) do
    local kept = redis.call('HMGET', KEY.message .. message, 'uid', 'json')
    if message_visibility(viewer, kept[1]) >= ON_REQUEST then return kept[2] end
  end
  return nil
end

-- How many of the newest MAX_UNREAD messages above the viewer's mark the viewer sees. Own messages are never above it.
local function count_unread(viewer, id)
  local mark = redis.call('HGET', KEY.marks .. id, viewer) or '0'
  local found = 0
  local above = redis.call('ZRANGE', KEY.messages .. id, last_shown(viewer, id), '(' .. mark, 'BYSCORE', 'REV', 'LIMIT', 0,
    MAX_UNREAD)
  for _, message in ipairs(above) do
    if message_visibility(viewer, redis.call('HGET', KEY.message .. message, 'uid')) >= ON_REQUEST then
      found = found + 1
    end
  end
  return found
end

local function talk_json(viewer, talk)
  local last = last_visible_message_json(viewer, talk.id)
  return '{"id":"' .. talk.id .. '","people":["' .. table.concat(talk.people, '","') .. '"],"name":' .. talk.name_json
    .. ',"created":"' .. to_iso8601(talk.created) .. '"' .. (last and ',"last_message":' .. last or '')
    .. format(',"unread":%d}', count_unread(viewer, talk.id))
end
