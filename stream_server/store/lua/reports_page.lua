-- parts: users statuses paging reports
-- Read a page of the open or the decided reports, for an administrator. Read only.
-- ARGV: 3 to 8 see parts/paging.lua. Reply: the page with reports as JSON, see parts/paging.lua.
return read_page(admin_report_json)
