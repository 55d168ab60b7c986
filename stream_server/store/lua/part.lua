-- The parts of shared subscriptions (store/social/parts.py). The row of such a subscription has '#' and the number of its parts
-- in the place of the reader, and the lowest cursor of a part (subscription.lua). The field of its name and ' parts' has two
-- lines of words: `<cursor>:<member>` of each part, without a member if nobody ever held it; and
-- `<member>:<connection>:<ends>:<left>` of each member: the connection that reads as it, with '~' before a long poll; the end
-- of its lease in ms since 1970; '1' if it has left, else '0'.
-- A part is free without a member, or with one that has left or whose lease has ended. Such a member stays until another
-- takes its parts, so that its acks count until then.
local MAX_MEMBERS = 64

-- A free part waits for so long before a stream is ended so that its client may take it. A worker that has left may be back.
local PART_GRACE_MS = 3000

-- The members and the parts of a shared subscription. Each part refers to its member, and each member lists its parts.
local function read_parts(uid, name)
  local parts, members = redis.call('HGET', KEY.subscriptions .. uid, name .. ' parts'):match('^([^\n]*)\n(.*)$')
  local shared, by_id = {members = {}, parts = {}}, {}
  for id, connection, ends, left in members:gmatch('([^: ]+):([^: ]+):(%d+):([01])') do
    by_id[id] = {id = id, connection = connection, ends = tonumber(ends), has_left = left == '1', parts = {}}
    table.insert(shared.members, by_id[id])
  end
  for cursor, id in parts:gmatch('([^: ]+):([^ ]*)') do
    local part = {cursor = cursor, member = by_id[id]}
    table.insert(shared.parts, part)
    if part.member then table.insert(part.member.parts, part) end
  end
  return shared
end

local function is_present(member, now)
  return member and not member.has_left and member.ends > now
end

-- Stores the parts, without the members that are not needed any more. Returns the lowest cursor.
local function store_parts(uid, name, shared, now)
  local parts, members, lowest = {}, {}, shared.parts[1].cursor
  for at, part in ipairs(shared.parts) do
    parts[at] = part.cursor .. ':' .. (part.member and part.member.id or '')
    if part.cursor ~= lowest and is_before(part.cursor, lowest) then lowest = part.cursor end
  end
  for _, member in ipairs(shared.members) do
    if #member.parts > 0 or is_present(member, now) then
      table.insert(members, table.concat({member.id, member.connection, to_text(member.ends), member.has_left and '1' or '0'}, ':'))
    end
  end
  redis.call('HSET', KEY.subscriptions .. uid, name .. ' parts', table.concat(parts, ' ') .. '\n' .. table.concat(members, ' '))
  return lowest
end

-- Makes the parts of a new subscription. Each begins behind `cursor`.
local function make_parts(uid, name, cursor, count)
  local parts = {}
  for at = 1, count do parts[at] = {cursor = cursor} end
  store_parts(uid, name, {parts = parts, members = {}}, 0)
end

-- Tells the servers that hold connections of members to close them. A member without a name of its own has left then,
-- because its client comes back as another one.
local function close_members(uid, members, code)
  for _, member in ipairs(members) do
    if not member.has_left then close_reader(uid, member.connection, code) end
    member.has_left = member.has_left or member.id == member.connection
  end
end

-- The member that has this value in a field, such as its id. nil for none.
local function find_member(shared, field, value)
  for _, member in ipairs(shared.members) do
    if member[field] == value then return member end
  end
end

-- The number of members that are present, if this one is; those among them that hold most parts; and the free parts.
local function survey_parts(shared, own, now)
  local present, most, free = 1, own, {}
  for _, member in ipairs(shared.members) do
    if member ~= own and is_present(member, now) then
      present = present + 1
      if #member.parts > #most.parts then most = member end
    end
  end
  for _, part in ipairs(shared.parts) do
    if part.member ~= own and not is_present(part.member, now) then table.insert(free, part) end
  end
  return present, most, free
end

-- Gives a member its share. It keeps what it holds, takes free parts up to an equal share, and then parts of those who hold
-- two more than it does. Returns the members that lose a part, and the number of present members.
local function assign_parts(shared, own, now)
  local losers, is_loser = {}, {}
  local present, most, free = survey_parts(shared, own, now)
  while true do
    local part = #own.parts < #shared.parts / present and free[1]
    if not part and #most.parts - #own.parts >= 2 then part = most.parts[#most.parts] end
    if not part then return losers, present end
    local loser = part.member
    if loser then
      for at, one in ipairs(loser.parts) do
        if one == part then table.remove(loser.parts, at) end
      end
      if not is_loser[loser] then table.insert(losers, loser) end
      is_loser[loser] = true
    end
    part.member = own
    table.insert(own.parts, part)
    present, most, free = survey_parts(shared, own, now)
  end
end

-- The parts of a member as text: `<index>:<cursor>` of each, with blanks between them.
local function share_of(shared, member)
  local words = {}
  for at, part in ipairs(shared.parts) do
    if part.member == member then table.insert(words, to_text(at - 1) .. ':' .. part.cursor) end
  end
  return table.concat(words, ' ')
end

-- Whether a row of a subscription is that of a shared one.
local function is_shared(reader)
  return reader and reader:sub(1, 1) == '#'
end

-- Lets a connection read a shared subscription as the member `id`, with a lease for `lease_ms`, if its share is still
-- `offered`; '-' asks for an offer, and changes nothing. Connections whose members lose parts are closed, and the one that
-- read as this member before. But if `goes_on` is '1', a poll that did so was an earlier one of the same client, and has ended.
-- Reply: `taken`; `offered` if the share is another one, or servers deliver the parts; `full` with too many members;
-- `unknown` without such a subscription. Then the share, and the bytes that were appended to the log.
function run.subscription_join(uid, name, id, connection, lease_ms, offered, goes_on) --> outcome, share, appended
  local row, webhook = unpack(redis.call('HMGET', KEY.subscriptions .. uid, name, name .. ' webhook'))
  local _, created, reader = read_subscription(row)
  if not is_shared(reader) then return {'unknown', '', 0} end
  if webhook then return {'offered', '', 0} end
  local shared, now = read_parts(uid, name), now_ms()
  local own = find_member(shared, 'id', id)
  local before = own and {id = id, connection = own.connection, has_left = own.has_left}
  if not own then
    own = {id = id, parts = {}}
    table.insert(shared.members, own)
  end
  local losers, present = assign_parts(shared, own, now)
  if present > MAX_MEMBERS then return {'full', '', 0} end
  local share = share_of(shared, own)
  if share ~= offered then return {'offered', share, 0} end
  close_members(uid, losers, 'rebalanced')
  local has_ended = before and goes_on == '1' and before.connection:sub(1, 1) == '~'
  if before and before.connection ~= connection and not has_ended then close_members(uid, {before}, 'taken_over') end
  own.connection, own.ends, own.has_left = connection, now + tonumber(lease_ms), false
  store_subscription(uid, name, store_parts(uid, name, shared, now), created, reader)
  return {'taken', share, appended}
end

-- Raises the cursors of the parts that a connection holds, and that of the subscription to the lowest of all parts. So an
-- ack never moves a part that its sender lost, nor one that it got by a later connection.
-- Returns `acked`; `lost` if the connection is no member, or no more; `unnamed` without a connection.
local function ack_parts(uid, name, created, reader, connection, acked)
  if connection == '' then return 'unnamed' end
  local shared = read_parts(uid, name)
  local member = find_member(shared, 'connection', connection) or find_member(shared, 'connection', '~' .. connection)
  if not member then return 'lost' end
  local before -- most parts of a member have the cursor of its last ack
  for _, part in ipairs(member.parts) do
    if part.cursor == before or is_before(part.cursor, acked) then before, part.cursor = part.cursor, acked end
  end
  store_subscription(uid, name, store_parts(uid, name, shared, now_ms()), created, reader)
  return 'acked'
end

-- Whether a member may have more parts than it holds: one has been free for a while, or another member has too many.
local function may_grow(shared, own, now)
  local present, most, free = survey_parts(shared, own, now)
  if #free == 0 then return #most.parts - #own.parts >= 2 end
  local has_waited = false
  for _, part in ipairs(free) do
    has_waited = has_waited or not part.member or part.member.ends + PART_GRACE_MS <= now
  end
  return has_waited and #own.parts < #shared.parts / present
end

-- Renews the leases of members. From REST on there are five of each: the user, the name, the member, its connection, and the
-- lease in ms from now on, '0' if the connection has ended.
-- Reply: for each `held`; `grows` if it may have more parts, so that it should connect again; `lost` if there is no such
-- member any more. Of a member that another connection reads as, nothing changes: that one has closed this one.
function run.subscriptions_renew(...)
  local now, replies = now_ms(), {}
  for at = REST, #ARGV, 5 do
    local uid, name, id, connection, lease_ms = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3], ARGV[at + 4]
    local _, _, reader = read_subscription(redis.call('HGET', KEY.subscriptions .. uid, name))
    local shared = is_shared(reader) and read_parts(uid, name)
    local member, reply = shared and find_member(shared, 'id', id), 'held'
    if not member then
      reply = 'lost'
    elseif member.connection == connection and not member.has_left then
      member.ends = now + tonumber(lease_ms)
      if lease_ms ~= '0' and may_grow(shared, member, now) then reply = 'grows' end
      member.has_left = lease_ms == '0' or (reply == 'grows' and id == connection)
      store_parts(uid, name, shared, now)
    end
    replies[#replies + 1] = reply
  end
  return replies
end
