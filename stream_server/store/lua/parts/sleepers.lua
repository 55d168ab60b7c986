-- Home timelines of users who have not read theirs for a time are *asleep*: no status is added to them, and a job removes
-- them. When such a user comes back, a refill makes the timeline again. KEY.asleep has the time of falling asleep. It is
-- negative from the return to the end of the refill: meanwhile statuses are added again, and the timeline is not shown.

-- Those of an author and these readers whose home timelines are asleep.
local function find_sleepers(author, readers)
  local uids, found = {author, unpack(readers, 1, math.min(#readers, 999))}, {}
  for from = 1, #readers + 1, 1000 do
    if from > 1 then uids = {unpack(readers, from - 1, math.min(#readers, from + 998))} end
    for at, since in ipairs(redis.call('ZMSCORE', KEY.asleep, unpack(uids))) do
      if since and tonumber(since) > 0 then found[#found + 1] = uids[at] end
    end
  end
  return found
end
