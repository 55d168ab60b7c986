-- parts: jobs
-- Find those users and lists of a page that must not receive a status, because they no longer follow or contain its
-- author. Read only. ARGV: 3 status, 4 author, 5 number of followers, from 6 on these followers, then lists. Reply: the
-- author's `left` version, the former followers, the former lists. If the status is deleted, all users and lists.
local status, author, followers = ARGV[3], ARGV[4], tonumber(ARGV[5])
local alive = redis.call('EXISTS', KEY.status .. status) == 1

local function no_longer_in(key, from, upto)
  local found = {}
  for at = from, upto do
    if not alive or not redis.call('ZSCORE', key, ARGV[at]) then found[#found + 1] = ARGV[at] end
  end
  return found
end

local left = author_versions(author)
return {left, no_longer_in(KEY.followers .. author, 6, 5 + followers), no_longer_in(KEY.listed .. author,
  6 + followers, #ARGV)}
