-- parts: users statuses paging reports
-- A piece of the open or the decided reports, for an administrator: read only. The walk's arguments.
return read_page(admin_report_json)
