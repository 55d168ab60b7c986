-- parts: idempotent users actor visibility talks
-- Open a talk (a direct conversation). Two users have only one talk with each other: opening it again returns it. The
-- first log entry comes with the first message, so the talk's id comes from the clock and needs no log number. For users
-- who do not follow the one who opens it, the talk is a request, until they answer it. Until then the same user cannot
-- open another talk with them.
-- ARGV: 3 user, 4 name as JSON ('null' for none), 5 name, from 6 on the other users.
-- Reply: id of a new talk, or `unchanged`; JSON of the talk.
for at = 6, #ARGV do
  if not can_contact(actor.id, ARGV[at]) then return refuse('NOT_FOUND user people') end
end
local pair, there
if #ARGV == 6 then
  local one, other = actor.id, ARGV[6]
  if tonumber(one) > tonumber(other) then one, other = other, one end
  pair = KEY.pair .. one .. ':' .. other
  there = redis.call('GET', pair)
end
local knows = {}
for at = 6, #ARGV do
  knows[at] = not ASK_STRANGERS or redis.call('ZSCORE', KEY.following .. ARGV[at], actor.id)
  if not there and not knows[at] and redis.call('ZSCORE', KEY.strangers .. ARGV[at], actor.id) then
    return refuse('UNANSWERED talks people')
  end
end
if there then
  if not find_own_talk(actor.id, there) then accept_talk(actor.id, there, there) end
  return keep_reply('unchanged', talk_json(actor.id, find_own_talk(actor.id, there)))
end
local ms, seq = next_position()
local id, people = make_id(ms, seq), {actor.id, unpack(ARGV, 6)}
redis.call('HSET', KEY.meta, 'ms', to_text(ms), 'seq', to_text(seq))
redis.call('HSET', KEY.talk .. id, 'id', id, 'uid', actor.id, 'people', table.concat(people, ' '), 'name_json', ARGV[4],
  'name', ARGV[5], 'created', to_text(ms))
redis.call('ZADD', KEY.talks .. actor.id, id, id)
for at = 6, #ARGV do
  redis.call('ZADD', (knows[at] and KEY.talks or KEY.talk_requests) .. ARGV[at], id, id)
  if not knows[at] then redis.call('ZADD', KEY.strangers .. ARGV[at], id, actor.id) end
end
if pair then redis.call('SET', pair, id) end
return keep_reply(id, talk_json(actor.id, find_own_talk(actor.id, id)))
