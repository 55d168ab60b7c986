-- parts: idempotent users actor visibility statuses reports
-- Report a user or a status. If the reporter already has an open report of the same user or status, nothing changes.
-- There is no log entry, because only administrators read reports.
-- ARGV: 3 reporter, 4 user, 5 status (one of the two is ''), 6 reason, 7 note as JSON.
-- Reply: report id, or `unchanged` for an open one; JSON of the report.
local uid, user, status = actor.id, ARGV[4], ARGV[5]
local row = status ~= '' and find_visible_status(uid, status)
if status ~= '' and not row then return refuse('NOT_FOUND status status') end
if status == '' and not can_see_user(uid, user) then return refuse('NOT_FOUND user user') end
user = row and row.uid or user
if user == uid then return refuse('ONESELF ' .. (row and 'status' or 'user')) end
local name = open_report_field(uid, user, status)
local open = redis.call('HGET', KEY.filed, name)
if open then return keep_reply('unchanged', report_json(open)) end
local ms, seq = next_position()
local id = make_id(ms, seq)
redis.call('HSET', KEY.report .. id, 'id', id, 'uid', uid, 'user', user, 'status', status, 'reason', ARGV[6], 'note',
  ARGV[7], 'posted', to_text(ms))
redis.call('HSET', KEY.meta, 'ms', to_text(ms), 'seq', to_text(seq))
redis.call('HSET', KEY.filed, name, id)
redis.call('ZADD', KEY.reports, id, id)
return keep_reply(id, report_json(id))
