local MAX_UNREAD, MESSAGES_SEARCHED = 100, 64

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

local function has_as_request(uid, id)
  return redis.call('ZSCORE', KEY.talk_requests .. uid, id)
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
  for _, message in ipairs(redis.call('ZRANGE', KEY.messages .. id, 0, MESSAGES_SEARCHED - 1, 'REV')) do
    local kept = redis.call('HMGET', KEY.message .. message, 'uid', 'json')
    if message_visibility(viewer, kept[1]) >= ON_REQUEST then return kept[2] end
  end
  return nil
end

-- How many of the newest MAX_UNREAD messages above the viewer's mark the viewer sees. Own messages are never above it.
local function count_unread(viewer, id)
  local mark = redis.call('HGET', KEY.marks .. id, viewer) or '0'
  local found = 0
  local above = redis.call('ZRANGE', KEY.messages .. id, '+inf', '(' .. mark, 'BYSCORE', 'REV', 'LIMIT', 0, MAX_UNREAD)
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
