-- parts: users statuses paging reports
-- A piece of the open or the decided reports, for an administrator: read only. The walk's arguments.
return walk(case_json)
