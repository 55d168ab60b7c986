-- parts: users statuses paging reports
-- Read a page of the open or the decided reports, for an administrator. Read only.
-- ARGV: 3 to 8 those of the part paging. Reply: that of the part paging, reports as JSON.
return read_page(admin_report_json)
