-- parts: idempotent users actor visibility statuses reports
-- Somebody reports a user or a status: reporter, user, status ('' for the one that it is not), reason, note encoded. The
-- same again while the report is open is the same report. Not an event: only administrators are told, who ask.
local uid, user, status = actor.id, ARGV[4], ARGV[5]
local row = status ~= '' and seen(uid, status)
if status ~= '' and not row then
  return refuse('NOT_FOUND status status')
elseif status == '' and not knows(uid, user) then
  return refuse('NOT_FOUND user user')
end
user = row and row.uid or user
if user == uid then
  return refuse('ONESELF ' .. (row and 'status' or 'user'))
end
local name = filed_as(uid, user, status)
local open = redis.call('HGET', KEY.filed, name)
if open then
  return answer(open .. ' open', report_json(open))
end
local ms, seq = tick()
local id = id_at(ms, seq)
redis.call('HSET', KEY.report .. id, 'id', id, 'uid', uid, 'user', user, 'status', status, 'reason', ARGV[6], 'note',
  ARGV[7], 'posted', text(ms))
redis.call('HSET', KEY.meta, 'ms', text(ms), 'seq', text(seq))
redis.call('HSET', KEY.filed, name, id)
redis.call('ZADD', KEY.reports, id, id)
return answer(id .. ' new', report_json(id))
