-- parts: users visibility statuses notification_subjects notifications paging
-- A piece of a user's notifications, as the user may see them now, and how many are not read: read only. After the
-- walk's arguments: the user.
local receiver = ARGV[9]
local mark = read_mark(receiver)
local marked = tonumber(mark)
local piece = walk(function(name, id)
  local source, kind, more = told(receiver, name)
  local number = tonumber(id)
  local ms = floor(number / 4096) + 1704067200000
  return source and notice_json(text(number), kind, person(source), more, ms, number > marked and 'false' or 'true')
end)
piece[3] = unread(receiver, mark)
return piece
