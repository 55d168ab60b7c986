local function time_json(ms)
  return ms and '"' .. to_iso8601(tonumber(ms)) .. '"' or 'null'
end

-- A report as its reporter sees it. `user` is also the author of a reported status. The note is kept as JSON.
local function report_json(id)
  local kept = redis.call('HMGET', KEY.report .. id, 'uid', 'user', 'status', 'reason', 'note', 'posted', 'outcome',
    'decided')
  return '{"id":"' .. id .. '","uid":"' .. kept[1] .. '","user":"' .. kept[2] .. '","status":'
    .. json_id_or_null(kept[3]) .. ',"reason":"' .. kept[4] .. '","note":' .. kept[5]
    .. ',"posted":' .. time_json(kept[6]) .. ',"outcome":' .. json_id_or_null(kept[7] or '')
    .. ',"decided":' .. time_json(kept[8]) .. '}'
end

-- A status as it is now, without regard to visibility; null if it is deleted.
local function reported_status_json(id)
  local row = find_status(id)
  if not row then return 'null' end
  local original = row.origin and find_status(row.origin)
  local shown = row.origin and ',"original":' .. (original and embedded_json(original) or 'null') or ''
  return status_json(row.head .. shown, row.likes, row.comments, row.reposts)
end

-- A report as an administrator sees it, with the reported user and status as they are now.
local function admin_report_json(id)
  local kept = redis.call('HMGET', KEY.report .. id, 'user', 'status', 'decider', 'remark')
  return report_json(id):sub(1, -2) .. ',"decided_by":' .. json_id_or_null(kept[3] or '')
    .. ',"remark":' .. (kept[4] or '""') .. ',"reported":{"user":' .. user_json(find_user(kept[1]))
    .. ',"status":' .. reported_status_json(kept[2]) .. '}}'
end

-- The field under which a reporter's open report is found.
local function open_report_field(uid, user, status)
  return uid .. ':' .. (status == '' and 'u' .. user or 's' .. status)
end
