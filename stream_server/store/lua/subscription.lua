-- Named subscriptions (store/social/subscriptions.py). KEY.subscriptions of a user is a hash. The field of a name has
-- `<cursor> <created> <used> <reader>`: two times in ms since 1970, and the connection that reads it: '-' for none, with
-- '~' before a long poll, '#' before the number of parts of a shared one (part.lua). The field of the name and ' parameters'
-- has the JSON of its parameters. webhook.lua has further fields. A subscription that nobody has used for SUBSCRIPTION_IDLE_MS
-- counts as removed; 0 keeps all.
local MAX_SUBSCRIPTIONS = 100
local MAX_SUBSCRIPTION_BYTES = 262144

-- A part counts as so many bytes: its cursor, and the names of its holder and of a worker.
local PART_BYTES = 256

-- The cursor, the time of creation and the reader in a row of a subscription. nil without a row, and for an idle one.
local function read_subscription(row)
  local cursor, created, used, reader = (row or ''):match('^(%S+) (%d+) (%d+) (%S+)$')
  if not cursor or (SUBSCRIPTION_IDLE_MS > 0 and tonumber(used) + SUBSCRIPTION_IDLE_MS < now_ms()) then return nil end
  return cursor, created, reader
end

-- Stores a subscription as used now. Redis forgets those of a user when the last has become idle. KEY.unacked has the time
-- of each cursor, so that the trimming of the log finds those that it comes close to. The cursor before the first entry has
-- no time; the first entry has one.
local function store_subscription(uid, name, cursor, created, reader)
  local key = KEY.subscriptions .. uid
  redis.call('HSET', key, name, cursor .. ' ' .. created .. ' ' .. to_text(now_ms()) .. ' ' .. reader)
  if SUBSCRIPTION_IDLE_MS > 0 then
    redis.call('PEXPIRE', key, to_text(SUBSCRIPTION_IDLE_MS))
  else
    redis.call('PERSIST', key) -- it may have a time from before, when the setting was another one
  end
  local ms = cursor:match('^%d+')
  if ms == '0' then
    local first = redis.call('XRANGE', KEY.log, '-', '+', 'COUNT', 1)[1]
    ms = first and first[1]:match('^%d+') or to_text(now_ms())
  end
  redis.call('ZADD', KEY.unacked, ms, uid .. ' ' .. name)
end

-- Removes fields of subscriptions of a user from those that the trimming of the log finds, and from those to deliver.
local function forget_unacked(uid, fields)
  for _, field in ipairs(fields) do
    for _, key in ipairs({KEY.unacked, KEY.webhooks, KEY.failing}) do redis.call('ZREM', key, uid .. ' ' .. field) end
  end
end

-- Tells the server that holds the connection `reader` to close it.
local function close_reader(uid, reader, code)
  if reader == '-' then return end
  append_entry('stream', AUDIENCE_NONE, '{"wire":{"uid":"' .. uid .. '","connection":"' .. reader:gsub('^~', '')
    .. '","action":"close","code":"' .. code .. '"}}', next_position())
end

-- Whether the cursor `one` is before the cursor `other`.
local function is_before(one, other)
  local ms, seq = one:match('^(%d+)%-(%d+)')
  local other_ms, other_seq = other:match('^(%d+)%-(%d+)')
  if ms ~= other_ms then return tonumber(ms) < tonumber(other_ms) end
  return tonumber(seq) < tonumber(other_seq)
end

-- Makes a subscription that begins after `cursor`, '' for the newest entry; or changes the parameters of an existing one,
-- which keeps its cursor. `parts` is the number of parts of a shared one, '' for a new one that is not shared, and for any
-- existing one. Also removes the user's idle ones. `webhook`, `secret` and `standing` are those of change_webhook; a user has
-- at most `max_webhooks`, of which one of a shared subscription takes as many as there are parts. Servers that deliver the
-- subscription stop, and so do its readers if it gets a webhook. Reply: `made` or `changed`; then ' secret' if the secret was
-- taken.
function deed.subscription_put(uid, name, cursor, parameters, parts, webhook, secret, max_webhooks, standing)
  local key, alive, idle, others, webhooks, bytes = KEY.subscriptions .. uid, {}, {}, 0, 0, #parameters + #webhook
  local rows, all_parts, had_webhook = redis.call('HGETALL', key), tonumber(parts) or 0, false
  for at = 1, #rows, 2 do
    local kept, _, reader = read_subscription(not rows[at]:find(' ') and rows[at + 1])
    if kept then
      alive[rows[at]] = tonumber(reader:match('^#(%d+)')) or 1
      if rows[at] ~= name then others = others + 1 end
      if rows[at] ~= name or parts == '' then all_parts = all_parts + (tonumber(reader:match('^#(%d+)')) or 0) end
    end
  end
  for at = 1, #rows, 2 do
    local owner = rows[at]:match('^%S+')
    if not alive[owner] then
      idle[#idle + 1] = rows[at]
    elseif owner == name then
      had_webhook = had_webhook or rows[at]:find(' webhook$') ~= nil
    elseif not rows[at]:find(' parts$') and not rows[at]:find(' standing$') then
      bytes = bytes + #rows[at + 1]
      webhooks = webhooks + (rows[at]:find(' webhook$') and alive[owner] or 0)
    end
  end
  if others >= MAX_SUBSCRIPTIONS or bytes + PART_BYTES * all_parts > MAX_SUBSCRIPTION_BYTES then refuse('TOO_MANY subscriptions') end
  local own_parts = alive[name] or tonumber(parts) or 1
  if webhook ~= '' and webhooks + own_parts > tonumber(max_webhooks) then refuse('TOO_MANY webhooks') end
  local kept, created, reader = read_subscription(redis.call('HGET', key, name))
  if kept and parts ~= '' and reader ~= '#' .. parts then refuse('FIXED parts') end
  if kept and (had_webhook or webhook ~= '') then
    local code = had_webhook and 'closed_by_user' or 'taken_over'
    if is_shared(reader) then
      local shared = read_parts(uid, name)
      release_parts(uid, shared, code)
      store_parts(uid, name, shared, now_ms())
    else
      close_reader(uid, reader, code)
      reader = '-'
    end
  end
  if #idle > 0 then
    redis.call('HDEL', key, unpack(idle))
    forget_unacked(uid, idle)
  end
  redis.call('HSET', key, name .. ' parameters', parameters)
  if not kept and cursor == '' then
    local newest, entry = log_head()
    cursor = newest .. '.' .. entry
  end
  if not kept and parts ~= '' then make_parts(uid, name, cursor, tonumber(parts)) end
  store_subscription(uid, name, kept or cursor, created or to_text(now_ms()), reader or (parts == '' and '-' or '#' .. parts))
  local is_secret_taken = (had_webhook or webhook ~= '') and change_webhook(uid, name, own_parts, webhook, secret, standing)
  return keep_reply((kept and 'changed' or 'made') .. (is_secret_taken and ' secret' or ''))
end

-- Removes a subscription, and closes the connection that reads it. Reply: `removed`.
function deed.subscription_remove(uid, name)
  local key = KEY.subscriptions .. uid
  local cursor, _, reader = read_subscription(redis.call('HGET', key, name))
  if not cursor then refuse('NOT_FOUND subscription subscription') end
  if is_shared(reader) then
    close_members(uid, read_parts(uid, name).members, 'closed_by_user')
  else
    close_reader(uid, reader, 'closed_by_user')
  end
  redis.call('HDEL', key, name, name .. ' parameters', name .. ' parts', name .. ' webhook', name .. ' secrets', name .. ' standing')
  forget_unacked(uid, {name})
  return keep_reply('removed')
end

-- Gives a subscription to the connection `reader`, if its cursor is still `cursor`. The connection that had it is closed.
-- But if `goes_on` is '1', a poll that had it was an earlier one of the same client, and has ended.
-- Reply: `taken`; `moved` if the cursor is another one; `unknown` without such a subscription. And the bytes that were
-- appended to the log.
function run.subscription_take(uid, name, cursor, reader, goes_on) --> outcome, appended
  local kept, created, earlier = read_subscription(redis.call('HGET', KEY.subscriptions .. uid, name))
  if kept ~= cursor then return {kept and 'moved' or 'unknown', 0} end
  local has_ended = goes_on == '1' and earlier:sub(1, 1) == '~'
  if earlier ~= reader and not has_ended then close_reader(uid, earlier, 'taken_over') end
  store_subscription(uid, name, cursor, created, reader)
  return {'taken', appended}
end

-- Raises the cursors of subscriptions. From REST on there are five of each ack: the user, the name, the cursor, when the
-- subscription was created, '0' for any time: one that was made anew has another time; and of a shared one the connection.
-- Reply: for each `acked`; `unknown` without such a subscription; `ahead` for a cursor behind the end of the log; or what
-- `ack_parts` says of a shared one.
function run.subscriptions_ack(...)
  local last = redis.call('HMGET', KEY.meta, 'ms', 'seq', 'n')
  local head, last_n, replies = last[1] and last[1] .. '-' .. last[2] or '0-0', tonumber(last[3] or '0'), {}
  for at = REST, #ARGV, 5 do
    local uid, name, acked, made, connection = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3], ARGV[at + 4]
    local kept, created, reader = read_subscription(redis.call('HGET', KEY.subscriptions .. uid, name))
    if not kept or (made ~= '0' and made ~= created) then
      replies[#replies + 1] = 'unknown'
    elseif is_before(head, acked) or tonumber(acked:match('%d+$')) > last_n then
      replies[#replies + 1] = 'ahead'
    elseif is_shared(reader) then
      replies[#replies + 1] = ack_parts(uid, name, created, reader, connection, acked)
    else
      store_subscription(uid, name, is_before(kept, acked) and acked or kept, created, reader)
      replies[#replies + 1] = 'acked'
    end
  end
  return replies
end
