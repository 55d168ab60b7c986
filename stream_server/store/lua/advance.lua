-- parts: jobs queue
-- A pass has done its writes: job, fence, the place behind its page (score and member), '1' if that was the last page
-- of its phase, how long to hold the job (ms), the author's version up to which it was looked who left ('' for that of
-- the page), and how many statuses the timeline has ('' if that does not matter). Gives the word for what is next:
-- 'stale' (the job is another's), 'moved' (the truth is not any more what the page said), 'more', 'again' or 'done'.
local job = held(ARGV[3], ARGV[4])
if not job then
  return 'stale'
end
local score, member, last, hold_ms, looked, size = ARGV[5], ARGV[6], ARGV[7] == '1', ARGV[8], ARGV[9], ARGV[10]

local function moved()
  if job.mode == 'spread' then
    return versions(job.author) ~= (looked ~= '' and looked or job.left)
  elseif job.mode == 'merge' then
    local _, deleted = versions(job.author)
    return deleted ~= job.deleted
  elseif job.mode ~= 'refill' then
    return false
  end
  local deleted = 0
  for author in job.authors:gmatch('%S+') do
    if author ~= job.owner and not redis.call('ZSCORE', sources(job.timelines, job.owner), author) then
      return true
    end
    local _, gone = versions(author)
    deleted = deleted + tonumber(gone)
  end
  return text(deleted) ~= (job.authors == '' and '0' or job.deleted)
end

if moved() then
  if job.mode == 'refill' then
    go_on(job, '', '', '', tonumber(hold_ms))
  end
  return 'moved'
end
if not last then
  go_on(job, job.phase, score, member, tonumber(hold_ms))
  return 'more'
end
local phase = next_phase(job)
if phase then
  go_on(job, phase, '', '', tonumber(hold_ms))
  return 'more'
end
if job.mode == 'remove' and size ~= '' and tonumber(size) < CAP * 3 / 4 then
  leave('refill-' .. job.timelines .. '-' .. job.owner, 'refill', now_ms(), 'owner', job.owner)
end
return finish(job)
