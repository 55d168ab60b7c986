-- parts: idempotent users actor statuses notifications sleepers jobs job_passes dependents step_timelines status_removal suspension reports audit
-- Decide a report: delete the status, suspend its author, or dismiss the report. The first decision is final.
-- ARGV: 3 administrator, 4 report, 5 outcome, 6 remark as JSON.
-- Reply: position, `decided` without an entry, or `unchanged`; JSON of the report, fence of the job that cleans up after
-- a deleted status ('' for none), the author's first followers and first lists, the reported user and status.
local uid, id, outcome = actor.id, ARGV[4], ARGV[5]
local kept = redis.call('HMGET', KEY.report .. id, 'uid', 'user', 'status', 'outcome')
local reporter, user, status = kept[1], kept[2], kept[3]
if not reporter then return refuse('NOT_FOUND report id') end
if kept[4] == outcome then return keep_reply('unchanged', admin_report_json(id), '', {}, {}, {}, user, status) end
if kept[4] then return refuse('DECIDED report') end
if outcome == 'removed' and status == '' then return refuse('STATUSLESS outcome') end
if outcome == 'suspended' and user == uid then return refuse('ONESELF outcome') end
local ms, seq, n = next_position()
local position, fence, people, lists, asleep = 'decided', '', {}, {}, {}
local row = outcome == 'removed' and find_status(status)
if row then
  position, fence, people, lists, asleep = remove_status(append_entry, row, ms, seq, n)
elseif outcome == 'suspended' and not find_user(user).suspended then
  position = change_suspension('suspend', user, ms, seq, n)
end
redis.call('HSET', KEY.report .. id, 'outcome', outcome, 'decided', to_text(ms), 'decider', uid, 'remark', ARGV[6])
redis.call('ZREM', KEY.reports, id)
redis.call('ZADD', KEY.decided, id, id)
redis.call('HDEL', KEY.filed, open_report_field(reporter, user, status))
audit(uid, 'decide', id, outcome)
return keep_reply(position, admin_report_json(id), fence, people, lists, asleep, user, status)
