-- parts: idempotent users actor visibility talks
-- Send a message to a talk. In a talk of two users, this is refused if one blocks the other or is suspended.
-- Only users who accepted the talk get the message as an event. As long as nobody did, a few messages are all, and the
-- others never see more than those before they accept. A message of a user who has the talk as a request accepts it.
-- ARGV: 3 user, 4 talk, 5 message as JSON, 6 message. Reply: position; JSON of the message.
local talk = find_own_talk(actor.id, ARGV[4])
if not talk then return refuse('NOT_FOUND talk id') end
if #talk.people == 2 then
  local other = talk.people[1] == actor.id and talk.people[2] or talk.people[1]
  if not can_contact(actor.id, other) then return refuse('NOT_FOUND talk id') end
end
local listeners, requested = {}, {}
for _, uid in ipairs(talk.people) do
  if uid == actor.id or has_accepted(uid, talk.id) then
    listeners[#listeners + 1] = uid
  elseif has_as_request(uid, talk.id) then
    requested[#requested + 1] = uid
  end
end
local count = redis.call('ZCARD', KEY.messages .. talk.id)
if #listeners == 1 and count >= MAX_UNANSWERED then return refuse('UNANSWERED talk id') end
local ms, seq, n = next_position()
local id = make_id(ms, seq)
local json = '{"id":"' .. id .. '","talk":"' .. talk.id .. '","uid":"' .. actor.id .. '","login":"' .. actor.login
  .. '","message":' .. ARGV[5] .. ',"posted":"' .. to_iso8601(ms) .. '"}'
local audience, body = 'users:' .. table.concat(listeners, ','), '{"wire":{"message":' .. json .. '}}'
local position, now = append_entry('message', audience, body, ms, seq, n)
redis.call('HSET', KEY.message .. id, 'id', id, 'talk', talk.id, 'uid', actor.id, 'login', actor.login, 'message',
  ARGV[6], 'posted', now, 'json', json)
redis.call('ZADD', KEY.messages .. talk.id, id, id)
accept_talk(actor.id, talk.id, id)
for _, uid in ipairs(listeners) do
  redis.call('ZADD', KEY.talks .. uid, id, talk.id)
end
if count < MAX_UNANSWERED then
  for _, uid in ipairs(requested) do
    redis.call('ZADD', KEY.talk_requests .. uid, id, talk.id)
  end
end
redis.call('HSET', KEY.marks .. talk.id, actor.id, id)
return keep_reply(position, json)
