-- parts: statuses
-- Read statuses for the archive. Read only. ARGV: from 3 on ids.
-- Reply: for each status that exists {id, JSON without the original, audience, likes, comments, id of the newest
-- comment ('' for none)}.
local found = {}
for at = 3, #ARGV do
  local id = ARGV[at]
  local row = find_status(id)
  if row then
    local newest = row.comments ~= '0' and redis.call('ZRANGE', KEY.comments .. id, -1, -1)[1] or ''
    found[#found + 1] = {id, embedded_json(row), redis.call('HGET', KEY.status .. id, 'audience'), row.likes,
      row.comments, newest}
  end
end
return found
