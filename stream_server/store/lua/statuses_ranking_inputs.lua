-- parts: visibility statuses
-- What importance goes by: read only. Viewer, '1' to be told of what the viewer likes, then ids. For each status that the viewer sees: id, author, when it was
-- posted (ms), likes, comments and reposts (of the original, where it has no words of its own), and '1' if viewer and
-- author follow each other. Behind them, if wanted, the authors of the newest LIKED statuses that the viewer likes.
local LIKES_COUNTED = 100
local viewer = ARGV[3]
local figures, liked, mutual = {}, {}, {}

local function is_mutual(author)
  if mutual[author] == nil then
    mutual[author] = redis.call('ZSCORE', KEY.following .. viewer, author)
      and redis.call('ZSCORE', KEY.followers .. viewer, author) and '1' or '0'
  end
  return mutual[author]
end

for at = 5, #ARGV do
  local row = find_status(ARGV[at])
  if row and visible_status_json(viewer, row, VISIBLE) then
    local counted_on = row.wordless and row.origin or row.id
    local counts = redis.call('HMGET', KEY.status .. counted_on, 'likes', 'comments', 'reposts')
    figures[#figures + 1] = {row.id, row.uid, redis.call('HGET', KEY.status .. row.id, 'posted'), counts[1] or '0',
      counts[2] or '0', counts[3] or '0', is_mutual(row.uid)}
  end
end
for _, id in ipairs(ARGV[4] == '1' and redis.call('ZRANGE', KEY.liked .. viewer, 0, LIKES_COUNTED - 1, 'REV') or {}) do
  liked[#liked + 1] = redis.call('HGET', KEY.status .. id, 'uid') or ''
end
return {figures, liked}
