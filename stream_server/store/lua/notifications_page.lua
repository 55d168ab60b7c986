-- parts: users visibility statuses notification_subjects notifications paging
-- Read a page of a user's notifications as the user may see them now, and the unread count. Read only.
-- ARGV: 3 to 8 those of the part paging, 9 user.
-- Reply: that of the part paging, notifications as JSON; then the unread count.
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
