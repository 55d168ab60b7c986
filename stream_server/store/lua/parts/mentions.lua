-- Finds the mentioned users. A user whom the author may not see is not found, because the id would reveal them.
-- ARGV[at] is the number of mentions. Behind it stand their logins in lower case, then the JSON of the text's entities
-- in one piece more than there are mentions. Returns the JSON with the ids between the pieces, and the ids
-- without repetition.
local function resolve_mentions(author, at)
  local most = tonumber(ARGV[at])
  local pieces, ids, known = {ARGV[at + most + 1]}, {}, {}
  for i = 1, most do
    local id = redis.call('HGET', KEY.logins, ARGV[at + i])
    if id and not can_see_user(author, id) then id = nil end
    if id and not known[id] then
      known[id] = true
      ids[#ids + 1] = id
    end
    pieces[i + 1] = (id and ',"id":"' .. id .. '"' or '') .. ARGV[at + most + 1 + i]
  end
  return table.concat(pieces), ids
end
