-- parts: notifications jobs job_passes dependents
-- A pass has done its writes: job, fence, the place behind its page (phase, score and member), '1' if there is no page
-- behind it, how long to hold the job (ms), the author's version up to which it was looked who left ('' for that of
-- the page), and how many statuses the timeline has ('' if that does not matter). Gives the word for what is next:
-- 'stale' (the job is another's), 'moved' (the truth is not any more what the page said), 'more', 'again' or 'done'.
local job = find_held_job(ARGV[3], ARGV[4])
if not job then
  return 'stale'
end
local phase, score, member, last, hold_ms = ARGV[5], ARGV[6], ARGV[7], ARGV[8] == '1', tonumber(ARGV[9])
local looked, size = ARGV[10], ARGV[11]

local function has_changed()
  if job.mode == 'spread' then
    return author_versions(job.author) ~= (looked ~= '' and looked or job.left)
  elseif job.mode == 'merge' then
    local _, deleted = author_versions(job.author)
    return deleted ~= job.deleted
  elseif job.mode ~= 'refill' then
    return false
  end
  local deleted = 0
  for author in job.authors:gmatch('%S+') do
    if author ~= job.owner and not redis.call('ZSCORE', timeline_sources_key(job.timelines, job.owner), author) then
      return true
    end
    local _, gone = author_versions(author)
    deleted = deleted + tonumber(gone)
  end
  return to_text(deleted) ~= (job.authors == '' and '0' or job.deleted)
end

if has_changed() then
  if job.mode == 'refill' then
    continue_job(job, '', '', '', hold_ms)
  end
  return 'moved'
end
if not last then
  continue_job(job, phase, score, member, hold_ms)
  return 'more'
elseif job.mode == 'refill' and job.phase == '' then
  continue_job(job, 'merge', '', '', hold_ms)
  return 'more'
elseif job.mode == 'clean' then
  return continue_status_cleanup(job, hold_ms)  -- in the same step, since what hung on a status is seldom more than that
end
if job.mode == 'remove' and size ~= '' and tonumber(size) < TIMELINE_MAX * 3 / 4 then
  enqueue_job('refill-' .. job.timelines .. '-' .. job.owner, 'refill', now_ms(), 'owner', job.owner)
end
return finish_job(job)
