-- parts: visibility statuses
-- What importance goes by: read only. Viewer, '1' to be told of what the viewer likes, then ids. For each status that the viewer sees: id, author, when it was
-- posted (ms), likes, comments and reposts (of the original, where it has no words of its own), and '1' if viewer and
-- author follow each other. Behind them, if wanted, the authors of the newest LIKED statuses that the viewer likes.
local LIKED = 100
local viewer = ARGV[3]
local figures, liked, mutual = {}, {}, {}

local function follow_each_other(author)
  if mutual[author] == nil then
    mutual[author] = redis.call('ZSCORE', KEY.following .. viewer, author)
      and redis.call('ZSCORE', KEY.followers .. viewer, author) and '1' or '0'
  end
  return mutual[author]
end

for at = 5, #ARGV do
  local row = status_row(ARGV[at])
  if row and row_json(viewer, row, SHOWN) then
    local counted_on = row.wordless and row.origin or row.id
    local counts = redis.call('HMGET', KEY.status .. counted_on, 'likes', 'comments', 'reposts')
    figures[#figures + 1] = {row.id, row.uid, redis.call('HGET', KEY.status .. row.id, 'posted'), counts[1] or '0',
      counts[2] or '0', counts[3] or '0', follow_each_other(row.uid)}
  end
end
for _, id in ipairs(ARGV[4] == '1' and redis.call('ZRANGE', KEY.liked .. viewer, 0, LIKED - 1, 'REV') or {}) do
  liked[#liked + 1] = redis.call('HGET', KEY.status .. id, 'uid') or ''
end
return {figures, liked}
