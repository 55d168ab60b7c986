-- parts: idempotent users actor statuses notifications jobs status_removal suspension reports
-- Decide a report and carry the outcome out: delete the status or suspend its author. The first decision is final.
-- ARGV: 3 administrator, 4 report, 5 outcome, 6 remark as JSON.
-- Reply: position or `unchanged`; JSON of the report, fence of the job that cleans a deleted status up ('' for none),
-- the first followers and the first lists that may have it, the reported user and status.
local uid, id, outcome = actor.id, ARGV[4], ARGV[5]
local kept = redis.call('HMGET', KEY.report .. id, 'uid', 'user', 'status', 'outcome')
local reporter, user, status = kept[1], kept[2], kept[3]
if not reporter then
  return refuse('NOT_FOUND report id')
elseif kept[4] == outcome then
  return keep_reply('unchanged', admin_report_json(id), '', {}, {}, user, status)
elseif kept[4] then
  return refuse('DECIDED report')
elseif outcome == 'removed' and status == '' then
  return refuse('STATUSLESS outcome')
elseif outcome == 'suspended' and user == uid then
  return refuse('ONESELF outcome')
end
local ms, seq, n = next_position()
local position, fence, people, lists = 'unchanged', '', {}, {}
local row = outcome == 'removed' and find_status(status)
if row then
  position, fence, people, lists = remove_status(row, ms, seq, n)
elseif outcome == 'suspended' and not find_user(user).suspended then
  position = suspend_user(user, ms, seq, n)
end
redis.call('HSET', KEY.report .. id, 'outcome', outcome, 'decided', to_text(ms), 'decider', uid, 'remark', ARGV[6])
redis.call('ZREM', KEY.reports, id)
redis.call('ZADD', KEY.decided, id, id)
redis.call('HDEL', KEY.filed, open_report_field(reporter, user, status))
return keep_reply(position, admin_report_json(id), fence, people, lists, user, status)
