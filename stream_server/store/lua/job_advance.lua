-- parts: notifications jobs job_passes dependents
-- Record that the writes of a job's pass have succeeded, and decide what the worker does next.
-- ARGV: 3 job, 4 fence, 5 to 7 the position after the page (phase, score, member), 8 '1' if this was the last page, 9
-- time to hold the job (ms), 10 the author's `left` version after the check for former readers ('' without a check), 11
-- number of statuses on the timeline ('' if it does not matter), 12 '1' if timelines of the page could not be written
-- because their server did not answer: after its last page the job then starts again.
-- Reply: 'stale' (another worker holds the job), 'moved' (the data changed during the pass), 'more', 'again' or 'done'.
local job = find_held_job(ARGV[3], ARGV[4])
if not job then return 'stale' end
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
  if job.mode == 'refill' then continue_job(job, '', '', '', hold_ms) end
  return 'moved'
end
if ARGV[12] == '1' then
  redis.call('HSET', job.key, 'again', 'wanted')
  job.again = 'wanted'
end
if not last then
  continue_job(job, phase, score, member, hold_ms)
  return 'more'
elseif job.mode == 'refill' and job.phase == '' then
  continue_job(job, 'merge', '', '', hold_ms)
  return 'more'
elseif job.mode == 'clean' then
  -- In the same step, because one page usually holds all likes and comments of a status.
  return continue_status_cleanup(job, hold_ms)
end
if job.mode == 'remove' and size ~= '' and tonumber(size) < TIMELINE_MAX * 3 / 4
  and not (job.timelines == 'home' and redis.call('ZSCORE', KEY.asleep, job.owner)) then
  enqueue_job('refill-' .. job.timelines .. '-' .. job.owner, 'refill', now_ms(), 'owner', job.owner)
end
local outcome = finish_job(job)
-- The home timeline is complete, so it is no longer asleep.
if outcome == 'done' and job.mode == 'refill' and job.timelines == 'home' then
  local since = redis.call('ZSCORE', KEY.asleep, job.owner)
  if since and tonumber(since) < 0 then redis.call('ZREM', KEY.asleep, job.owner) end
end
return outcome
