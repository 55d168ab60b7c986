-- parts: sleepers jobs job_passes expected_statuses
-- Begin a pass of a job: read its page, and record the versions of the data that it reads. ARGV: 3 job, 4 fence.
-- Reply: mode, phase, kind of timeline ('home' or 'list'), status or owner, author, score after which the page begins,
-- users with scores, newest statuses of the author or of these users, lists with scores (only after the last follower),
-- 'done' if the job runs for a second time, and those of the author and these users whose home timelines are asleep.
-- Empty if another worker holds the job.
local job = find_held_job(ARGV[3], ARGV[4])
if not job then return {} end

-- The next authors of a timeline, and their newest statuses.
local function read_followed_page()
  local page, newest, authors = newest_of_sources(job.timelines, job.owner, job.score, job.member)
  local deleted = 0
  for _, author in ipairs(authors) do
    local _, gone = author_versions(author)
    deleted = deleted + tonumber(gone)
  end
  return page, newest, table.concat(authors, ' '), to_text(deleted)
end

local page, newest, lists, asleep, authors, left, deleted = {}, {}, {}, {}, '', '0', '0'
if job.author ~= '' then left, deleted = author_versions(job.author) end
if job.status ~= '' and job.phase ~= 'rest' then
  local score, member = job.score, job.member
  if job.phase == '' then
    page, score, member = page_after(KEY.followers .. job.uid, score, member, FANOUT_BATCH_SIZE), '', ''
    local readers = {}
    for at = 1, #page, 2 do readers[#readers + 1] = page[at] end
    asleep = find_sleepers(job.uid, readers)
  end
  if #page < 2 * FANOUT_BATCH_SIZE then
    lists = page_after(KEY.listed .. job.uid, score, member, FANOUT_BATCH_SIZE - #page / 2)
  end
elseif job.mode == 'merge' or job.mode == 'remove' then
  newest = newest_statuses(job.author)
elseif job.mode == 'refill' and job.phase == 'merge' then
  page, newest, authors, deleted = read_followed_page()
end
redis.call('HSET', job.key, 'begun', '1', 'left', left, 'deleted', deleted, 'authors', authors)
return {job.mode, job.phase, job.timelines, job.status ~= '' and job.status or job.owner, job.author, job.score, page,
  newest, lists, job.again, asleep}
