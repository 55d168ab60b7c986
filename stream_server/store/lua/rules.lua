-- Saved filter rules of users.
local MAX_RULES = 1000
local MAX_RULE_BYTES = 262144
local MAX_REMOVED_BYTES = 524288

-- Saves filter rules of a user. A rule with the same text and tag as a stored rule is a duplicate. `all_or_nothing` and
-- `dry_run` are '1' or '0'. From REST on there are each rule's text and tag as JSON members.
-- Reply: position or `unchanged` (no rule was saved); for each rule `+<id>` if it is new, `=<id>` if a duplicate.
-- The entry has these words too, for a repetition of the request.
function deed.saved_rules_add(uid, all_or_nothing, dry_run, ...) --> outcomes
  local key = KEY.rules .. uid
  local kept, known, wires, outcomes, new_ids, rows = redis.call('HGETALL', key), {}, {}, {}, {}, {}
  local repeated, bytes = false, 0
  for i = 1, #kept, 2 do
    bytes = bytes + #kept[i + 1]
    known[kept[i + 1]:match('^{"id":"%d+",(.*),"created":"[^"]*"}$')] = kept[i]
  end
  local ms, seq, n = next_position()
  for i = REST, #ARGV do
    local same = known[ARGV[i]]
    repeated = repeated or same ~= nil
    if same then
      outcomes[#outcomes + 1] = '=' .. same
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
  if #kept / 2 + #new_ids > MAX_RULES or bytes > MAX_RULE_BYTES then refuse('TOO_MANY rules rules') end
  local outcome_words = table.concat(outcomes, ' ')
  if #new_ids == 0 or dry_run == '1' or (all_or_nothing == '1' and repeated) then
    return keep_reply('unchanged', outcome_words)
  end
  local position = append_entry('rules', AUDIENCE_NONE, '{"wire":{"uid":"' .. uid .. '","added":['
    .. table.concat(wires, ',') .. '],"removed":[],"outcomes":"' .. outcome_words .. '"}}', ms, seq, n)
  for i = 1, #new_ids do
    redis.call('HSET', key, new_ids[i], rows[i])
  end
  return keep_reply(position, outcome_words)
end

-- Keeps removed rules for streams that begin before the removal: those whose removal is on the log, if they have at most
-- MAX_REMOVED_BYTES. `number` is the id made at the removal, `cursor` its position. A member without an id says that all
-- rules are forgotten that were removed up to its cursor. The user's field `removed_bytes` is the length of all members, so
-- that a change reads only those that it forgets, and not thousands.
local function keep_removed(uid, rows, number, cursor)
  local key, user, forgotten = KEY.removed_rules .. uid, KEY.user .. uid, nil
  local bytes = tonumber(redis.call('HGET', user, 'removed_bytes') or nil)
  if not bytes then -- earlier versions did not count
    bytes = 0
    for _, member in ipairs(redis.call('ZRANGE', key, 0, -1)) do bytes = bytes + #member end
  end
  for _, row in ipairs(rows) do
    local member = row:match('^(.*),"created":"[^"]*"}$') .. ',"removed":"' .. cursor .. '"}'
    bytes = bytes + #member
    redis.call('ZADD', key, number, member)
  end
  local ms, seq = redis.call('XRANGE', KEY.log, '-', '+', 'COUNT', 1)[1][1]:match('^(%d+)-(%d+)$')
  local floor = tonumber(make_id(ms, seq))
  local oldest = redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')
  while oldest[1] and (bytes > MAX_REMOVED_BYTES or tonumber(oldest[2]) < floor) do
    for _, member in ipairs(redis.call('ZRANGEBYSCORE', key, oldest[2], oldest[2])) do bytes = bytes - #member end
    redis.call('ZREMRANGEBYSCORE', key, oldest[2], oldest[2])
    forgotten = {oldest[2], '{"id":"","rule":"",' .. oldest[1]:match('"removed":"[^"]*"}$')}
    oldest = redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')
  end
  if forgotten then
    bytes = bytes + #forgotten[2]
    redis.call('ZADD', key, unpack(forgotten))
  end
  redis.call('HSET', user, 'removed_bytes', to_text(bytes))
end

-- Changes a saved filter rule of a user, which keeps its id: the entry removes the old version and adds the new one.
-- `dry_run` is '1' or '0'. `member` is the new text and tag as JSON members. Reply: position or `unchanged` (the rule has
-- this text and tag already, or another one has them); the id of the rule that has them now.
function deed.saved_rules_change(uid, id, dry_run, member) --> holder
  local key = KEY.rules .. uid
  local kept, row, bytes, holder = redis.call('HGETALL', key), nil, 0, id
  for i = 1, #kept, 2 do
    bytes = bytes + #kept[i + 1]
    if kept[i] == id then row = kept[i + 1] end
    if kept[i + 1]:match('^{"id":"%d+",(.*),"created":"[^"]*"}$') == member then holder = kept[i] end
  end
  if not row then refuse('NOT_FOUND rule id') end
  local wire = '{"id":"' .. id .. '",' .. member
  local changed = wire .. row:match(',"created":"[^"]*"}$')
  if changed == row or holder ~= id then return keep_reply('unchanged', holder) end
  if bytes - #row + #changed > MAX_RULE_BYTES then refuse('TOO_MANY rules rule') end
  if dry_run == '1' then return keep_reply('unchanged', id) end
  local ms, seq, n = next_position()
  local position = append_entry('rules', AUDIENCE_NONE, '{"wire":{"uid":"' .. uid .. '","added":[' .. wire
    .. '}],"removed":["' .. id .. '"]}}', ms, seq, n)
  redis.call('HSET', key, id, changed)
  keep_removed(uid, {row}, make_id(ms, seq), (position:gsub(' ', '.')))
  return keep_reply(position, id)
end

-- Removes saved filter rules of a user. `dry_run` is '1' or '0'. From REST on there are ids. Reply: position or
-- `unchanged`; the ids that exist.
function deed.saved_rules_remove(uid, dry_run, ...) --> removed
  local key, ids, rows = KEY.rules .. uid, {}, {}
  for i = REST, #ARGV do
    local row = redis.call('HGET', key, ARGV[i])
    if row then ids[#ids + 1], rows[#rows + 1] = ARGV[i], row end
  end
  local found_ids = table.concat(ids, ' ')
  if #ids == 0 or dry_run == '1' then return keep_reply('unchanged', found_ids) end
  local ms, seq, n = next_position()
  local position = append_entry('rules', AUDIENCE_NONE, '{"wire":{"uid":"' .. uid .. '","added":[],"removed":["'
    .. table.concat(ids, '","') .. '"]}}', ms, seq, n)
  redis.call('HDEL', key, unpack(ids))
  keep_removed(uid, rows, make_id(ms, seq), (position:gsub(' ', '.')))
  return keep_reply(position, found_ids)
end
