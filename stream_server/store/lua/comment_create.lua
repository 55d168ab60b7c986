-- parts: idempotent users actor visibility statuses reactions notification_subjects mentions notifications
-- A new comment: who, under which status, its message as it is and encoded, and what the part mentions takes.
local status = ARGV[4]
local row
row, refused = open_to(actor.id, status)
if refused then
  return refused
end
local entities, mentioned = mentions(actor.id, 7)
local ms, seq, n = tick()
local id = id_at(ms, seq)
local json = '{"id":"' .. id .. '","uid":"' .. actor.id .. '","login":"' .. actor.login .. '","status":"' .. status
  .. '","message":' .. ARGV[6] .. ',"posted":"' .. iso(ms) .. '","entities":' .. entities .. '}'
moved(row, 'comments', 1)
local body = '{"wire":{"comment":' .. json .. ',"status":' .. inner_json(row) .. '}}'
local audience = deed_audience(actor.id, row)
local position = append('comment', audience, body, ms, seq, n)
redis.call('HSET', KEY.comment .. id, 'id', id, 'uid', actor.id, 'login', actor.login, 'status', status, 'message',
  ARGV[5], 'posted', text(ms), 'json', json, 'mentioned', table.concat(mentioned, ' '), 'audience', audience)
redis.call('ZADD', KEY.comments .. status, id, id)
redis.call('HINCRBY', KEY.status .. status, 'comments', 1)

-- Those concerned are told, each once, if they may see it and want to hear of it.
local function tell(who, kind, subject)
  local about = about_comment(who, id)
  if about then
    ms, seq, n = notify(who, kind, actor, subject, about, ms, seq, n)
  end
end
tell(row.uid, 'comment', id)
for _, who in ipairs(mentioned) do
  if who ~= row.uid then
    tell(who, 'mention', 'c' .. id)
  end
end
return answer(position, json)
