-- parts: users visibility statuses notification_subjects notifications paging
-- Read a page of a user's notifications, without those that the user may not see now, and the unread count. Read only.
-- ARGV: 3 to 8 see parts/paging.lua, 9 user. Reply: the page with notifications as JSON, see parts/paging.lua; then the
-- unread count.
local receiver = ARGV[9]
local mark = get_read_mark(receiver)
local marked = tonumber(mark)
local piece = read_page(function(name, id)
  local source, kind, more = visible_notification(receiver, name)
  local number = tonumber(id)
  local ms = floor(number / 4096) + 1704067200000
  return source and notification_json(to_text(number), kind, find_user(source), more, ms, number > marked and 'false'
    or 'true')
end)
piece[3] = count_unread(receiver, mark)
return piece
