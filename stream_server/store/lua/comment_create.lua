-- parts: idempotent users actor visibility statuses reactions notification_subjects mentions notifications
-- A new comment: who, under which status, its message as it is and encoded, and what the part mentions takes.
local status = ARGV[4]
local row
row, refused = find_reactable_status(actor.id, status)
if refused then
  return refused
end
local entities, mentioned = resolve_mentions(actor.id, 7)
local ms, seq, n = next_position()
local id = make_id(ms, seq)
local json = '{"id":"' .. id .. '","uid":"' .. actor.id .. '","login":"' .. actor.login .. '","status":"' .. status
  .. '","message":' .. ARGV[6] .. ',"posted":"' .. to_iso8601(ms) .. '","entities":' .. entities .. '}'
with_counter_changed(row, 'comments', 1)
local body = '{"wire":{"comment":' .. json .. ',"status":' .. embedded_json(row) .. '}}'
local audience = reaction_audience(actor.id, row)
local position = append_entry('comment', audience, body, ms, seq, n)
redis.call('HSET', KEY.comment .. id, 'id', id, 'uid', actor.id, 'login', actor.login, 'status', status, 'message',
  ARGV[5], 'posted', to_text(ms), 'json', json, 'mentioned', table.concat(mentioned, ' '), 'audience', audience)
redis.call('ZADD', KEY.comments .. status, id, id)
redis.call('HINCRBY', KEY.status .. status, 'comments', 1)

-- Those concerned are told, each once, if they may see it and want to hear of it.
local function notify_if_visible(who, kind, subject)
  local about = comment_subject_json(who, id)
  if about then
    ms, seq, n = notify(who, kind, actor, subject, about, ms, seq, n)
  end
end
notify_if_visible(row.uid, 'comment', id)
for _, who in ipairs(mentioned) do
  if who ~= row.uid then
    notify_if_visible(who, 'mention', 'c' .. id)
  end
end
return keep_reply(position, json)
