-- parts: users statuses reports
-- Read one report. Read only. ARGV: 3 report, 4 its reporter, or '' for an administrator. Reply: JSON.
local reporter = redis.call('HGET', KEY.report .. ARGV[3], 'uid')
if not reporter or (ARGV[4] ~= '' and ARGV[4] ~= reporter) then return refuse('NOT_FOUND report id') end
return (ARGV[4] == '' and admin_report_json or report_json)(ARGV[3])
