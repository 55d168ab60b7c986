-- Webhooks (store/social/webhooks.py): subscriptions whose events the server sends to a URL. The fields of such a
-- subscription in KEY.subscriptions are, beside those of subscription.lua:
--   `<name> webhook`   the JSON of the URL and the size of a batch
--   `<name> secrets`   the secret; or it, the one before it, and until when that one signs too (ms)
--   `<name> standing`  `<state> <failures> <failing since> <next attempt> <tried cursor>`, of a shared one these of each
--                      part; then the outcomes of the last attempts, newest first, a line each
-- KEY.webhooks has the time (ms) at which each may be claimed. While a process holds a webhook this is the end of its lease,
-- and the reader of the subscription is the process's name for this hold, the fence. Of a shared subscription, processes hold
-- parts: the name for a hold is that of the part's member (part.lua), and the time is that of the first part. A webhook that
-- is paused or disabled is not in KEY.webhooks. KEY.failing has the time of the first failure of those that wait for another
-- attempt. KEY.deliverers has the processes that claim webhooks, and when each did so last.
local MAX_OUTCOMES = 20
local OLD_SECRET_MS = 86400000

-- A process that has not claimed for so long counts for no share of the parts. It claims about every second.
local CLAIMING_MS = 3000

-- Stops deliveries of a subscription.
local function stop_webhook(member)
  redis.call('ZREM', KEY.webhooks, member)
  redis.call('ZREM', KEY.failing, member)
end

-- Stores the standing of a webhook: its first line, which has five words for each part, then new outcomes, then those before.
local function store_standing(key, name, line, outcomes)
  local text, kept = line, 0
  local earlier = redis.call('HGET', key, name .. ' standing') or ''
  for one in (outcomes .. (earlier:match('\n.*$') or '')):gmatch('[^\n]+') do
    kept = kept + 1
    if kept <= MAX_OUTCOMES then text = text .. '\n' .. one end
  end
  redis.call('HSET', key, name .. ' standing', text)
end

-- The first line of a standing in which the part `at` has the words of `line`; and since when a part fails, nil if none does.
local function place_standing(key, name, at, line)
  local parts, since = {}, nil
  for words in redis.call('HGET', key, name .. ' standing'):match('^[^\n]*'):gmatch('%S+ %S+ %S+ %S+ %S+') do
    table.insert(parts, #parts + 1 == at and line or words)
    local ms = tonumber(parts[#parts]:match('^%S+ %S+ (%d+)'))
    if ms > 0 then since = math.min(since or ms, ms) end
  end
  return table.concat(parts, ' '), since
end

-- Gives the subscription `name` with so many parts a webhook, or takes it away if `webhook` is ''. It begins at once with the
-- words `standing` for each part, or not at all if these say that it is paused. `secret` is for one that has none. Returns
-- whether it was taken.
local function change_webhook(uid, name, parts, webhook, secret, standing)
  local key, member = KEY.subscriptions .. uid, uid .. ' ' .. name
  if webhook == '' then
    redis.call('HDEL', key, name .. ' webhook', name .. ' secrets', name .. ' standing')
    stop_webhook(member)
    return false
  end
  redis.call('HSET', key, name .. ' webhook', webhook)
  store_standing(key, name, (' ' .. standing):rep(parts):sub(2), '')
  stop_webhook(member)
  if standing:match('^active') then redis.call('ZADD', KEY.webhooks, to_text(now_ms()), member) end
  return redis.call('HSETNX', key, name .. ' secrets', secret) == 1
end

-- Gives a webhook another secret. The one before it signs too, for a day. Reply: `changed`.
function deed.webhook_secret(uid, name, secret)
  local key = KEY.subscriptions .. uid
  local alive = read_subscription(redis.call('HGET', key, name))
  local secrets = redis.call('HGET', key, name .. ' secrets')
  if not alive or not secrets then refuse('NOT_FOUND webhook subscription') end
  local until_ms = to_text(now_ms() + OLD_SECRET_MS)
  redis.call('HSET', key, name .. ' secrets', secret .. ' ' .. secrets:match('^%S+') .. ' ' .. until_ms)
  return keep_reply('changed')
end

-- Takes the parts of a shared subscription from all members, whose readings end. Store them then.
local function release_parts(uid, shared, code)
  close_members(uid, shared.members, code)
  shared.members = {}
  for _, part in ipairs(shared.parts) do part.member = nil end
end

-- How many parts of a webhook, up to the part `last`, a process holds, and how many of all it should: an equal share of all
-- processes that claim. Some hold one more, if the parts do not divide evenly.
local function share_of_process(shared, process, last, now)
  local processes = redis.call('ZRANGEBYSCORE', KEY.deliverers, to_text(now - CLAIMING_MS), to_text(now))
  local count, held, larger, of_first = math.max(1, #processes), {}, 0, 0
  for at, part in ipairs(shared.parts) do
    local holder = is_present(part.member, now) and part.member.id:match('^[^.]+')
    if holder then held[holder] = (held[holder] or 0) + 1 end
    if at == last then of_first = held[process] or 0 end
  end
  local share = math.floor(#shared.parts / count)
  for _, other in ipairs(processes) do
    if other ~= process and (held[other] or 0) > share then larger = larger + 1 end
  end
  return of_first, larger < #shared.parts % count and share + 1 or share
end

-- Stores the parts of a webhook, and when the first of them may be claimed: one that nobody ever held since it was due.
local function store_delivered(uid, name, created, reader, shared, now)
  local member, first = uid .. ' ' .. name, nil
  local due = math.min(now, tonumber(redis.call('ZSCORE', KEY.webhooks, member) or now))
  for _, part in ipairs(shared.parts) do
    local ends = part.member and part.member.ends or due
    first = math.min(first or ends, ends)
  end
  store_subscription(uid, name, store_parts(uid, name, shared, now), created, reader)
  redis.call('ZADD', KEY.webhooks, to_text(first), member)
end

-- Adds parts of a shared subscription that nobody holds to `claimed`, up to the share of the process, and `most` in all.
local function claim_parts(uid, name, fields, process, claim, lease_ms, most, now, claimed)
  local _, created, reader = read_subscription(fields[1])
  local shared = read_parts(uid, name)
  local held, share = share_of_process(shared, process, #shared.parts, now)
  for at, part in ipairs(shared.parts) do
    local before = part.member
    if held < share and #claimed < most and (not before or before.ends <= now) then
      if before then
        close_members(uid, {before}, 'taken_over')
        before.parts = {}
      end
      local id = process .. '.' .. claim .. '.' .. to_text(#claimed + 1)
      part.member = {id = id, connection = id, ends = now + lease_ms, has_left = false, parts = {part}}
      table.insert(shared.members, part.member)
      claimed[#claimed + 1] = {uid, name, id, to_text(at - 1), unpack(fields)}
      held = held + 1
    end
  end
  store_delivered(uid, name, created, reader, shared, now)
end

-- Gives a process some of the webhooks that may be claimed, for `lease_ms`, and parts of shared ones, up to its share. The
-- process reads each as `<process>.<claim>.<number>`; a reader before it is closed. `claim` is another one in each call. With
-- 0 as `most` it only asks, and counts for no share.
-- Reply: the number of webhooks that fail; of those that nobody has claimed for `waiting_ms`; for each claimed one the user,
-- the name, the reader, the part, 0 if it is not shared, the row of the subscription, its parameters, its webhook, its
-- standing and its parts.
function run.webhooks_claim(process, claim, lease_ms, most, waiting_ms) --> failing, waiting, claimed
  local now, claimed, ms, count = now_ms(), {}, tonumber(lease_ms), tonumber(most)
  redis.call('ZREMRANGEBYSCORE', KEY.deliverers, '-inf', to_text(now - CLAIMING_MS))
  redis.call('ZREMRANGEBYSCORE', KEY.deliverers, '(' .. to_text(now), '+inf') -- from before the clock was set back
  if count > 0 then redis.call('ZADD', KEY.deliverers, to_text(now), process) end
  for _, member in ipairs(redis.call('ZRANGEBYSCORE', KEY.webhooks, '-inf', to_text(now), 'LIMIT', '0', most)) do
    local uid, name = member:match('^(%S+) (%S+)$')
    local key = KEY.subscriptions .. uid
    local fields = redis.call('HMGET', key, name, name .. ' parameters', name .. ' webhook', name .. ' standing',
      name .. ' parts')
    local cursor, created, earlier = read_subscription(fields[1])
    if not cursor or not fields[3] then
      stop_webhook(member) -- the subscription is gone
    elseif is_shared(earlier) then
      claim_parts(uid, name, fields, process, claim, ms, count, now, claimed)
    elseif #claimed < count then
      local reader = process .. '.' .. claim .. '.' .. to_text(#claimed + 1)
      close_reader(uid, earlier, 'taken_over')
      store_subscription(uid, name, cursor, created, reader)
      redis.call('ZADD', KEY.webhooks, to_text(now + ms), member)
      claimed[#claimed + 1] = {uid, name, reader, '0', unpack(fields)}
    end
  end
  local waiting = redis.call('ZCOUNT', KEY.webhooks, '-inf', to_text(now - tonumber(waiting_ms)))
  return {redis.call('ZCARD', KEY.failing), waiting, claimed}
end

-- What a process says of webhooks that it holds. From REST on there are nine of each: the user, the name, the part, the
-- reader, the cursor up to which all is delivered, what follows, a time in ms, the first line of the standing, and new
-- outcomes. What follows is `hold` (on, for this time), `wait` (nobody holds it for this time), or `stop`, for all parts.
-- Reply: for each the cursor, and ' surplus' for each part beyond the share of the process; or `lost` if another reader has it
-- or it is gone.
function run.webhooks_report(...)
  local replies, now, head = {}, now_ms(), log_head()
  for first = REST, #ARGV, 9 do
    local uid, name, index, reader, acked, step, ms, line, outcomes = unpack(ARGV, first, first + 8)
    local key, member, at = KEY.subscriptions .. uid, uid .. ' ' .. name, tonumber(index) + 1
    local kept, created, holder = read_subscription(redis.call('HGET', key, name))
    local row, shared = holder, is_shared(holder) and read_parts(uid, name)
    local part = shared and shared.parts[at]
    if part then kept, holder = part.cursor, part.member and not part.member.has_left and part.member.id end
    if not kept or holder ~= reader then
      replies[#replies + 1] = 'lost'
    else
      local cursor = (is_before(kept, acked) and not is_before(head, acked)) and acked or kept
      local standing, since = place_standing(key, name, at, line)
      store_standing(key, name, standing, outcomes)
      set_member(KEY.failing, member, since and to_text(since))
      local held, share = 0, 0
      if not part then
        store_subscription(uid, name, cursor, created, step == 'hold' and reader or '-')
        redis.call('ZADD', KEY.webhooks, to_text(now + tonumber(ms)), member)
      else
        part.cursor, part.member.ends, part.member.has_left = cursor, now + tonumber(ms), step ~= 'hold'
        if step == 'stop' then release_parts(uid, shared, 'closed_by_user') end
        store_delivered(uid, name, created, row, shared, now)
        held, share = share_of_process(shared, reader:match('^[^.]+'), at, now)
      end
      if step == 'stop' then stop_webhook(member) end
      replies[#replies + 1] = cursor .. (held > share and ' surplus' or '')
    end
  end
  return replies
end
