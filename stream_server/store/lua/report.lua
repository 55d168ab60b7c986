-- Reports, and the audit log.
-- The newest deeds of administrators that are kept.
local MAX_AUDIT = 100000

-- Records a deed: who did what to which user or object, and details. Call it after the first write.
local function audit(actor_id, deed, subject, details)
  local last = redis.call('ZRANGE', KEY.audit, '-1', '-1', 'WITHSCORES')
  local now = now_ms()
  local id = make_id(now, 0)
  if last[2] and tonumber(last[2]) >= tonumber(id) then id = to_text(tonumber(last[2]) + 1) end
  redis.call('ZADD', KEY.audit, id, id)
  redis.call('HSET', KEY.deeds, id, '{"id":"' .. id .. '","at":"' .. to_iso8601(now) .. '","by":'
    .. json_id_or_null(actor_id) .. ',"deed":"' .. deed .. '","on":"' .. subject .. '","details":"' .. details .. '"}')
  for _, old in ipairs(redis.call('ZRANGE', KEY.audit, '0', to_text(-MAX_AUDIT - 1))) do
    redis.call('ZREM', KEY.audit, old)
    redis.call('HDEL', KEY.deeds, old)
  end
end

-- Closes a stream of any user for an administrator, as write.stream_command does. `body` is that of the log entry. `uid` is
-- empty for a stream of a reader token. Reply: position.
function deed.stream_end(admin, uid, connection, body)
  local position = append_entry('stream', AUDIENCE_NONE, body, next_position())
  audit(admin, 'end_stream', uid, connection)
  return keep_reply(position)
end

-- The field under which a reporter's open report is found.
local function open_report_field(uid, user, status)
  return uid .. ':' .. (status == '' and 'u' .. user or 's' .. status)
end

-- Reports a user or a status (one of the two is ''). If the reporter already has an open report of the same user or status,
-- nothing changes. There is no log entry, because only administrators read reports. `note` is JSON.
-- Reply: the id of the new report, or `unchanged` if one is open already; the id of the new or open report.
function deed.report_create(uid, user, status, reason, note) --> id
  local row = status ~= '' and find_visible_status(uid, status)
  if status ~= '' and not row then refuse('NOT_FOUND status status') end
  if status == '' and not can_see_user(uid, user) then refuse('NOT_FOUND user user') end
  user = row and row.uid or user
  if user == uid then refuse('ONESELF ' .. (row and 'status' or 'user')) end
  local name = open_report_field(uid, user, status)
  local open = redis.call('HGET', KEY.filed, name)
  if open then return keep_reply('unchanged', open) end
  local ms, seq = next_position()
  local id = make_id(ms, seq)
  redis.call('HSET', KEY.report .. id, 'uid', uid, 'user', user, 'status', status, 'reason', reason, 'note', note,
    'posted', to_text(ms))
  store_pair(ms, seq)
  redis.call('HSET', KEY.filed, name, id)
  redis.call('ZADD', KEY.reports, id, id)
  return keep_reply(id, id)
end

-- Decides a report: deletes the status ('removed'), suspends its author ('suspended'), or dismisses the report. The first
-- decision is final. `remark` is JSON.
-- Reply: position, `decided` without an entry, or `unchanged`; fence of the job that cleans up after a deleted status ('' for
-- none), the author's first followers and first lists and who of them is asleep, the reported user and status.
function deed.report_decide(admin, id, outcome, remark) --> fence, followers, lists, asleep, user, status -- RIGHTS *
  local kept = redis.call('HMGET', KEY.report .. id, 'uid', 'user', 'status', 'outcome')
  local reporter, user, status = kept[1], kept[2], kept[3]
  if not reporter then refuse('NOT_FOUND report id') end
  if kept[4] == outcome then return keep_reply('unchanged', '', {}, {}, {}, user, status) end
  if kept[4] then refuse('DECIDED report') end
  if outcome == 'removed' and status == '' then refuse('STATUSLESS outcome') end
  if outcome == 'suspended' and user == admin then refuse('ONESELF outcome') end
  local ms, seq, n, has_sleepers = next_position()
  local done = {position = 'decided', fence = '', people = {}, lists = {}, asleep = {}}
  local row = outcome == 'removed' and find_status(status)
  if row then
    done = remove_status(append_entry, true, row, ms, seq, n, has_sleepers)
  elseif outcome == 'suspended' then
    local author = find_user(user) -- or the account is gone
    if author and not author.suspended then
      done.position = change_suspension('suspend', user, admin, remark:sub(2, -2), ms, seq, n)
    end
  end
  redis.call('HSET', KEY.report .. id, 'outcome', outcome, 'decided', to_text(ms), 'decider', admin, 'remark', remark)
  redis.call('ZREM', KEY.reports, id)
  redis.call('ZADD', KEY.decided, id, id)
  redis.call('HDEL', KEY.filed, open_report_field(reporter, user, status))
  audit(admin, 'decide', id, outcome)
  return keep_reply(done.position, done.fence, done.people, done.lists, done.asleep, user, status)
end
