-- Talks: messages among people named beforehand. Needs the parts users and visibility.
local UNREAD_MOST, LOOKED_AT = 100, 64

local function talk_people(people)
  local found = {}
  for uid in people:gmatch('%S+') do
    found[#found + 1] = uid
  end
  return found
end

-- A talk by its id if this user is in it, or nil: for anybody else there is none.
local function seen_talk(uid, id)
  if not redis.call('ZSCORE', KEY.talks .. uid, id) then
    return nil
  end
  local kept = redis.call('HMGET', KEY.talk .. id, 'people', 'name_json', 'created')
  return {id = id, people = talk_people(kept[1]), name_json = kept[2], created = tonumber(kept[3])}
end

-- How much of a message its reader sees who is in the talk. To read a talk is to ask for it: QUIET is enough.
local function message_sight(viewer, author)
  return digit(facts(viewer, author) + DIRECT + PARTY)
end

-- The JSON of the newest message that the viewer sees among the newest LOOKED_AT, or nil.
local function last_message(viewer, id)
  for _, message in ipairs(redis.call('ZRANGE', KEY.messages .. id, 0, LOOKED_AT - 1, 'REV')) do
    local kept = redis.call('HMGET', KEY.message .. message, 'uid', 'json')
    if message_sight(viewer, kept[1]) >= QUIET then
      return kept[2]
    end
  end
  return nil
end

-- How many of the newest UNREAD_MOST messages above the viewer's mark they see; their own are never above it.
local function unread(viewer, id)
  local mark = redis.call('HGET', KEY.marks .. id, viewer) or '0'
  local found = 0
  local above = redis.call('ZRANGE', KEY.messages .. id, '+inf', '(' .. mark, 'BYSCORE', 'REV', 'LIMIT', 0, UNREAD_MOST)
  for _, message in ipairs(above) do
    if message_sight(viewer, redis.call('HGET', KEY.message .. message, 'uid')) >= QUIET then
      found = found + 1
    end
  end
  return found
end

local function talk_json(viewer, talk)
  local last = last_message(viewer, talk.id)
  return '{"id":"' .. talk.id .. '","people":["' .. table.concat(talk.people, '","') .. '"],"name":' .. talk.name_json
    .. ',"created":"' .. iso(talk.created) .. '"' .. (last and ',"last_message":' .. last or '')
    .. format(',"unread":%d}', unread(viewer, talk.id))
end
