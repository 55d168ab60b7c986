-- parts: jobs
-- Who of these has a status no more to come: read only. Its id, its author, how many followers, them, then lists. Gives
-- the author's version of those who left, the followers and the lists; of a status that is gone, all.
local status, author, followers = ARGV[3], ARGV[4], tonumber(ARGV[5])
local alive = redis.call('EXISTS', KEY.status .. status) == 1

local function no_longer_in(key, from, upto)
  local found = {}
  for at = from, upto do
    if not alive or not redis.call('ZSCORE', key, ARGV[at]) then
      found[#found + 1] = ARGV[at]
    end
  end
  return found
end

local left = author_versions(author)
return {left, no_longer_in(KEY.followers .. author, 6, 5 + followers), no_longer_in(KEY.listed .. author, 6 + followers, #ARGV)}
