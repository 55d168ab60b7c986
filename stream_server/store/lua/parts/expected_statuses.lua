-- Merges two lists of ids, newest first, into one of at most TIMELINE_MAX.
local function merge_newest(first, second)
  if #second == 0 then return first end
  local both, at, from = {}, 1, 1
  while #both < TIMELINE_MAX and (first[at] or second[from]) do
    if not second[from] or (first[at] and tonumber(first[at]) >= tonumber(second[from])) then
      both[#both + 1] = first[at]
      at = at + 1
    else
      both[#both + 1] = second[from]
      from = from + 1
    end
  end
  return both
end

-- The next REFILL_AUTHORS_PER_PASS authors of a timeline behind (score, member), with their scores; the newest
-- TIMELINE_MAX statuses of all of them; and their ids, preceded on the first page of a home timeline by its owner.
local function newest_of_sources(timelines, owner, score, member)
  local page = page_after(timeline_sources_key(timelines, owner), score, member, REFILL_AUTHORS_PER_PASS)
  local authors, newest = {}, {}
  if timelines == 'home' and score == '' then authors[1] = owner end
  for at = 1, #page, 2 do
    authors[#authors + 1] = page[at]
  end
  for _, author in ipairs(authors) do
    -- Older statuses than the TIMELINE_MAX newest so far cannot enter, so they are not even read.
    local above = newest[TIMELINE_MAX] and '(' .. newest[TIMELINE_MAX] or '-inf'
    newest = merge_newest(newest,
      redis.call('ZRANGE', KEY.profile .. author, '+inf', above, 'BYSCORE', 'REV', 'LIMIT', 0, TIMELINE_MAX))
  end
  return page, newest, authors
end
