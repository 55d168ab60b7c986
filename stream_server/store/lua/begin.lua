-- parts: jobs queue
-- A pass of a job begins (ARGV 3: its id, 4: the fence): notes the versions of the truth that it reads, and gives mode,
-- phase, timelines ('home' or 'list'), the status or the owner, the author, and the page of truth: people or lists and
-- their scores, statuses of the author, or the followed and, behind them, the newest of what they wrote. Nothing if
-- the job is another's by now.
local FOLLOWED = 50
local job = held(ARGV[3], ARGV[4])
if not job then
  return {}
end

-- Two lists of ids, newest first, as one of at most CAP.
local function merged(one, other)
  local both, at, from = {}, 1, 1
  while #both < CAP and (one[at] or other[from]) do
    if not other[from] or (one[at] and tonumber(one[at]) >= tonumber(other[from])) then
      both[#both + 1] = one[at]
      at = at + 1
    else
      both[#both + 1] = other[from]
      from = from + 1
    end
  end
  return both
end

local function profile(uid)
  return redis.call('ZRANGE', KEY.profile .. uid, 0, CAP - 1, 'REV')
end

-- The next of those from whom a timeline is filled, and the newest CAP statuses of them all.
local function followed()
  local page = page_after(sources(job.timelines, job.owner), job.score, job.member, FOLLOWED)
  local authors, newest, deleted = {}, {}, 0
  if job.timelines == 'home' and job.score == '' then
    authors[1] = job.owner
  end
  for at = 1, #page, 2 do
    authors[#authors + 1] = page[at]
  end
  for _, author in ipairs(authors) do
    newest = merged(newest, profile(author))
    local _, gone = versions(author)
    deleted = deleted + tonumber(gone)
  end
  return page, newest, table.concat(authors, ' '), text(deleted)
end

local page, newest, authors, left, deleted = {}, {}, '', '0', '0'
if job.author ~= '' then
  left, deleted = versions(job.author)
end
if job.status ~= '' and job.phase ~= 'rest' then
  local key = job.phase == 'lists' and KEY.listed or KEY.followers
  page = page_after(key .. job.uid, job.score, job.member, PASS)
elseif job.mode == 'merge' or job.mode == 'remove' then
  newest = profile(job.author)
elseif job.mode == 'refill' and job.phase == 'merge' then
  page, newest, authors, deleted = followed()
end
redis.call('HSET', job.key, 'begun', '1', 'left', left, 'deleted', deleted, 'authors', authors)
return {job.mode, job.phase, job.timelines, job.status ~= '' and job.status or job.owner, job.author, job.score, page,
  newest}
