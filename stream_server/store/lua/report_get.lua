-- parts: users statuses reports
-- One report: read only. Its id, and the id of the reporter, who alone may see it, or '' for an administrator.
local reporter = redis.call('HGET', KEY.report .. ARGV[3], 'uid')
if not reporter or (ARGV[4] ~= '' and ARGV[4] ~= reporter) then
  return refuse('NOT_FOUND report id')
end
return (ARGV[4] == '' and admin_report_json or report_json)(ARGV[3])
