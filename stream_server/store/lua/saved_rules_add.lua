-- parts: idempotent users actor
-- Rules of a user are made: user; '1' if none is made where one of them is there, '1' if none is made at all; then of
-- each the JSON members that make it another: its text and its tag. Answers in their order `+<id>` for one that is made
-- and `=<id>` for one that is there, behind the position of the entry, or behind `unchanged`: then nothing was made.
local MAX_RULES = 1000
local key, whole, dry = KEY.rules .. actor.id, ARGV[4] == '1', ARGV[5] == '1'
local kept, known, wires, outcomes, made, rows = redis.call('HGETALL', key), {}, {}, {}, {}, {}
for i = 1, #kept, 2 do
  known[kept[i + 1]:match('^{"id":"%d+",(.*),"created":"[^"]*"}$')] = kept[i]
end
local repeated = false
local ms, seq, n = next_position()
for i = 6, #ARGV do
  local there = known[ARGV[i]]
  repeated = repeated or there ~= nil
  if there then
    outcomes[#outcomes + 1] = '=' .. there
  else
    -- The entry stands at the last of the ids, so none of them is made again, and ids are in the order of the log.
    if #made > 0 then
      ms, seq = next_time_and_seq(ms, seq)
    end
    local id = make_id(ms, seq)
    made[#made + 1], wires[#wires + 1] = id, '{"id":"' .. id .. '",' .. ARGV[i] .. '}'
    rows[#rows + 1] = '{"id":"' .. id .. '",' .. ARGV[i] .. ',"created":"' .. to_iso8601(ms) .. '"}'
    known[ARGV[i]], outcomes[#outcomes + 1] = id, '+' .. id
  end
end
if #kept / 2 + #made > MAX_RULES then
  return refuse('TOO_MANY rules rules')
end
local told = table.concat(outcomes, ' ')
if #made == 0 or dry or (whole and repeated) then
  return keep_reply('unchanged ' .. told)
end
local position = append_entry('rules', AUDIENCE_NONE, '{"wire":{"uid":"' .. actor.id .. '","added":[' .. table.concat(wires, ',')
  .. '],"removed":[]}}', ms, seq, n)
for i = 1, #made do
  redis.call('HSET', key, made[i], rows[i])
end
return keep_reply(position .. ' ' .. told)
