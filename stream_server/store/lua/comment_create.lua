-- parts: idempotent users actor visibility statuses reactions notification_subjects mentions notifications
-- Add a user's comment to a status, and notify the status's author and the mentioned users.
-- ARGV: 3 user, 4 status, 5 message, 6 message as JSON, from 7 on the arguments of parts/mentions.lua.
-- Reply: position; JSON of the comment.
local status = ARGV[4]
local row
row, refused = find_reactable_status(actor.id, status)
if refused then return refused end
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

-- Notifies each user once, if the user may see the comment.
local function notify_if_visible(who, kind, subject)
  local about = comment_subject_json(who, id)
  if about then ms, seq, n = notify(who, kind, actor, subject, about, ms, seq, n) end
end
notify_if_visible(row.uid, 'comment', id)
for _, who in ipairs(mentioned) do
  if who ~= row.uid then notify_if_visible(who, 'mention', 'c' .. id) end
end
return keep_reply(position, json)
