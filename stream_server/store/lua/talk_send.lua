-- parts: idempotent users actor visibility talks
-- A message: who writes, the talk, the text encoded, and as it is. Of two people neither reaches the other any more
-- when one of them blocks, or is suspended.
local talk = seen_talk(actor.id, ARGV[4])
if not talk then
  return refuse('NOT_FOUND talk id')
end
if #talk.people == 2 then
  local other = talk.people[1] == actor.id and talk.people[2] or talk.people[1]
  if not reaches(actor.id, other) then
    return refuse('NOT_FOUND talk id')
  end
end
local ms, seq, n = tick()
local id = id_at(ms, seq)
local json = '{"id":"' .. id .. '","talk":"' .. talk.id .. '","uid":"' .. actor.id .. '","login":"' .. actor.login
  .. '","message":' .. ARGV[5] .. ',"posted":"' .. iso(ms) .. '"}'
local position = append('message', 'users:' .. table.concat(talk.people, ','), '{"wire":{"message":' .. json .. '}}',
  ms, seq, n)
redis.call('HSET', KEY.message .. id, 'id', id, 'talk', talk.id, 'uid', actor.id, 'login', actor.login, 'message',
  ARGV[6], 'posted', text(ms), 'json', json)
redis.call('ZADD', KEY.messages .. talk.id, id, id)
for _, uid in ipairs(talk.people) do
  redis.call('ZADD', KEY.talks .. uid, id, talk.id)
end
redis.call('HSET', KEY.marks .. talk.id, actor.id, id)
return answer(position, json)
