-- parts: idempotent users actor
-- Save filter rules of a user. A rule with the same text and tag as a stored rule is a duplicate.
-- ARGV: 3 user, 4 '1' for all rules or none, 5 '1' for a dry run, from 6 on each rule's text and tag as JSON members.
-- Reply: position or `unchanged` (no rule was saved); for each rule `+<id>` if it is new, `=<id>` if a duplicate.
-- The entry has these words too, for a repetition of the request.
local MAX_RULES, MAX_BYTES = 1000, 262144
local key, all_or_nothing, dry_run = KEY.rules .. actor.id, ARGV[4] == '1', ARGV[5] == '1'
local kept, known, wires, outcomes, new_ids, rows = redis.call('HGETALL', key), {}, {}, {}, {}, {}
local repeated, bytes = false, 0
for i = 1, #kept, 2 do
  bytes = bytes + #kept[i + 1]
  known[kept[i + 1]:match('^{"id":"%d+",(.*),"created":"[^"]*"}$')] = kept[i]
end
local ms, seq, n = next_position()
for i = 6, #ARGV do
  local there = known[ARGV[i]]
  repeated = repeated or there ~= nil
  if there then
    outcomes[#outcomes + 1] = '=' .. there
  else
    -- The entry takes the last of these ids, so no id is issued twice and ids keep the order of the log.
    if #new_ids > 0 then ms, seq = next_time_and_seq(ms, seq) end
    local id = make_id(ms, seq)
    new_ids[#new_ids + 1], wires[#wires + 1] = id, '{"id":"' .. id .. '",' .. ARGV[i] .. '}'
    rows[#rows + 1] = '{"id":"' .. id .. '",' .. ARGV[i] .. ',"created":"' .. to_iso8601(ms) .. '"}'
    bytes = bytes + #rows[#rows]
    known[ARGV[i]], outcomes[#outcomes + 1] = id, '+' .. id
  end
end
if #kept / 2 + #new_ids > MAX_RULES or bytes > MAX_BYTES then return refuse('TOO_MANY rules rules') end
local outcome_words = table.concat(outcomes, ' ')
if #new_ids == 0 or dry_run or (all_or_nothing and repeated) then
  return keep_reply('unchanged', outcome_words)
end
local position = append_entry('rules', AUDIENCE_NONE, '{"wire":{"uid":"' .. actor.id .. '","added":['
  .. table.concat(wires, ',') .. '],"removed":[],"outcomes":"' .. outcome_words .. '"}}', ms, seq, n)
for i = 1, #new_ids do
  redis.call('HSET', key, new_ids[i], rows[i])
end
return keep_reply(position, outcome_words)
