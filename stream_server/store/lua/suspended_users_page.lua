-- parts: users paging
-- A piece of the suspended users, each with `since`, for an administrator: read only. The walk's arguments.
return walk(function(uid, score)
  return person_json(person(uid)):sub(1, -2) .. ',"since":"' .. iso(tonumber(score)) .. '"}'
end)
