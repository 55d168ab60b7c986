-- Remove from a user's favorites old statuses that do not exist any more.
-- ARGV: 3 user, 4 id below which statuses are old, 5 rank at which the page begins, 6 size of the page.
-- Reply: rank at which the next page begins, '' after the last page.
local key, below, rank = KEY.favorites .. ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
local page = redis.call('ZRANGE', key, ARGV[5], to_text(rank + tonumber(ARGV[6]) - 1))
local gone = {}
for _, id in ipairs(page) do
  if tonumber(id) < below and redis.call('EXISTS', KEY.status .. id) == 0 then gone[#gone + 1] = id end
end
if #gone > 0 then redis.call('ZREM', key, unpack(gone)) end
return #page == tonumber(ARGV[6]) and to_text(rank + #page - #gone) or ''
