-- parts: users paging
-- Read a page of the suspended users with `since`, for an administrator. Read only.
-- ARGV: 3 to 8 those of the part paging. Reply: that of the part paging, users as JSON.
return read_page(function(uid, score)
  return user_json(find_user(uid)):sub(1, -2) .. ',"since":"' .. to_iso8601(tonumber(score)) .. '"}'
end)
