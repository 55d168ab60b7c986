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

for at, row in ipairs(read_statuses(viewer, ARGV, 5, #ARGV, 1)) do
  if row and shown_json(viewer, VISIBLE, unpack(row, 1, 8)) then
    local id, uid, counts = ARGV[at + 4], row[2], {unpack(row, 3, 5)}
    if row[8] then counts = redis.call('HMGET', KEY.status .. row[7], 'likes', 'comments', 'reposts') end
    figures[#figures + 1] = {id, uid, redis.call('HGET', KEY.status .. id, 'posted') or to_text(floor(id / 4096) + 1704067200000), counts[1] or '0',
      counts[2] or '0', counts[3] or '0', is_mutual(uid)}
  end
end
for _, id in ipairs(ARGV[4] == '1' and redis.call('ZRANGE', KEY.liked .. viewer, 0, LIKES_COUNTED - 1, 'REV') or {}) do
  liked[#liked + 1] = redis.call('HGET', KEY.status .. id, 'uid') or ''
end
return {figures, liked}
