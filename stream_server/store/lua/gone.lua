-- parts: jobs
-- Who of these has a status no more to come: read only. Its id, its author, 'lists' where these are lists and not
-- followers, then them. First the author's version of those who left; of a status that is gone, all.
local status, author = ARGV[3], ARGV[4]
local key = (ARGV[5] == 'lists' and KEY.listed or KEY.followers) .. author
local alive = redis.call('EXISTS', KEY.status .. status) == 1
local left = versions(author)
local found = {left}
for at = 6, #ARGV do
  if not alive or not redis.call('ZSCORE', key, ARGV[at]) then
    found[#found + 1] = ARGV[at]
  end
end
return found
