-- parts: users paging
-- A piece of the suspended users, each with `since`, for an administrator: read only. The walk's arguments.
return read_page(function(uid, score)
  return user_json(find_user(uid)):sub(1, -2) .. ',"since":"' .. to_iso8601(tonumber(score)) .. '"}'
end)
