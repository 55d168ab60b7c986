-- What belongs on a timeline, by the truth. Needs the part job_passes.

-- Two lists of ids, newest first, as one of at most CAP.
local function merge_newest(one, other)
  if #other == 0 then
    return one
  end
  local both, at, from = {}, 1, 1
  while #both < TIMELINE_MAX and (one[at] or other[from]) do
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

-- The next of those from whom a timeline is filled, FOLLOWED of them behind (score, member), with their scores; the
-- newest CAP statuses of them all; and their ids, before which the owner of a home stands on the first page.
local function newest_of_sources(timelines, owner, score, member)
  local page = page_after(timeline_sources_key(timelines, owner), score, member, REFILL_AUTHORS_PER_PASS)
  local authors, newest = {}, {}
  if timelines == 'home' and score == '' then
    authors[1] = owner
  end
  for at = 1, #page, 2 do
    authors[#authors + 1] = page[at]
  end
  for _, author in ipairs(authors) do
    -- Behind CAP newer ones nothing of an older one comes any more: it is not even read.
    local above = newest[TIMELINE_MAX] and '(' .. newest[TIMELINE_MAX] or '-inf'
    newest = merge_newest(newest,
      redis.call('ZRANGE', KEY.profile .. author, '+inf', above, 'BYSCORE', 'REV', 'LIMIT', 0, TIMELINE_MAX))
  end
  return page, newest, authors
end
