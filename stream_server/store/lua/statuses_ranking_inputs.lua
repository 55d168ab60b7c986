-- parts: visibility statuses
-- Read the facts that rank statuses by importance (store/timelines/importance.py). Read only.
-- ARGV: 3 viewer, 4 '1' to also return the authors whom the viewer likes, from 5 on ids of statuses.
-- Reply: for each status that the viewer may see {id, author, time of posting (ms), likes, comments, reposts, '1' if
-- viewer and author follow each other}, with the counters of the original for a plain repost; then the authors of the
-- newest LIKES_COUNTED statuses that the viewer likes.
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
