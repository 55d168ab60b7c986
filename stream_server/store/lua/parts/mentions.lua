-- Who is mentioned in a text. Needs the part visibility.

-- Whom the author may not know of is not found: an id would tell of them. From ARGV[at] on: how many mentions, their lower-cased logins, and the JSON of the text's entities in that many
-- pieces and one, between which the ids of the mentioned go. Gives that JSON, the ids, each once, and where in ARGV it
-- goes on.
local function resolve_mentions(author, at)
  local most = tonumber(ARGV[at])
  local pieces, ids, known = {ARGV[at + most + 1]}, {}, {}
  for i = 1, most do
    local id = redis.call('HGET', KEY.logins, ARGV[at + i])
    if id and not can_see_user(author, id) then
      id = nil
    end
    if id and not known[id] then
      known[id] = true
      ids[#ids + 1] = id
    end
    pieces[i + 1] = (id and ',"id":"' .. id .. '"' or '') .. ARGV[at + most + 1 + i]
  end
  return table.concat(pieces), ids, at + 2 * most + 2
end
