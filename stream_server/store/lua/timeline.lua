-- Home and list timelines that a write changes itself, and home timelines that are asleep. So a post of an author with few
-- readers needs no job. One server must have all keys for this. On a cluster STEP_TIMELINES is 0, and scripts do not even
-- know the names HOME_TIMELINE and LIST_TIMELINE of these keys.
-- Home timelines of users who have not read theirs for a time are *asleep*: no status is added to them, and a job removes
-- them. When such a user comes back, a refill makes the timeline again. KEY.asleep has the time of falling asleep. It is
-- negative from the return to the end of the refill: meanwhile statuses are added again, and the timeline is not shown.
-- Statuses that a follow adds to the home timeline in the same step, at most.
local MOST_MERGED_IN_STEP = 300

-- Those of an author and these readers whose home timelines are asleep.
local function find_sleepers(author, readers)
  local found = {}
  for from = 0, #readers, 1000 do
    local uids = {readers[from] or author, unpack(readers, from + 1, math.min(#readers, from + 999))}
    for at, since in ipairs(redis.call('ZMSCORE', KEY.asleep, unpack(uids))) do
      if since and tonumber(since) > 0 then found[#found + 1] = uids[at] end
    end
  end
  return found
end

-- The first FANOUT_BATCH_SIZE readers of an author, as a write returns them to the process, which need not ask for them
-- before the first pass of the job. Returns three lists:
-- * followers; with scores in turn if there are FANOUT_BATCH_SIZE readers or more, so that the next pass continues behind them
-- * lists that contain the author, if all followers are in the first list and there is room; with scores likewise
-- * of the author and these followers, those whose home timelines are asleep (only if next_position says that one may be)
-- Indexes are text where they can be: Redis takes 0.3 µs to make text of a number.
local function first_readers(author, has_sleepers)
  local people = redis.call('ZRANGE', KEY.followers .. author, '0', FANOUT_BATCH_SIZE - 1)
  local asleep = has_sleepers and find_sleepers(author, people) or {}
  local room = FANOUT_BATCH_SIZE - #people
  local lists = room > 0 and redis.call('ZRANGE', KEY.listed .. author, '0', room - 1) or {}
  if #lists < room then return people, lists, asleep end
  people = redis.call('ZRANGE', KEY.followers .. author, 0, FANOUT_BATCH_SIZE - 1, 'WITHSCORES')
  return people, room > 0 and redis.call('ZRANGE', KEY.listed .. author, 0, room - 1, 'WITHSCORES') or {}, asleep
end

-- The newest statuses of an author outside groups, which a timeline adds or removes.
local function newest_statuses(author)
  return redis.call('ZRANGE', KEY.profile .. author, 0, TIMELINE_MAX - 1, 'REV')
end

-- Whether these first readers are all readers of the author, and so few that the script may change their timelines itself.
local function fit_in_step(people, lists)
  return #people + #lists < math.min(STEP_TIMELINES, FANOUT_BATCH_SIZE)
end

-- The job that fills a timeline ('home' or 'list') again. A home timeline also falls asleep and wakes by a job of this
-- name, so that one never works beside the other.
local function refill_job(timelines, owner)
  return 'refill-' .. timelines .. '-' .. owner
end

-- Calls `change(key, number)` for the timelines of the author (number 0) and of these first readers (1, 2, ...), except home
-- timelines that are asleep. If it returns an error, because the key has another type, a job is left for this timeline, so
-- that the failure is seen as that of any job.
local function change_in_step(author, people, lists, asleep, ms, change)
  local is_asleep = {}
  for _, uid in ipairs(asleep) do is_asleep[uid] = true end
  for place = 0, #people + #lists do
    local list = lists[place - #people]
    local owner = list or people[place] or author
    if list or not is_asleep[owner] then
      local reply = change((list and LIST_TIMELINE or HOME_TIMELINE) .. '{' .. owner .. '}', place)
      if type(reply) == 'table' then
        enqueue_job(refill_job(list and 'list' or 'home', owner), 'refill', ms - JOB_GRACE_MS, 'owner', owner)
      end
    end
  end
end

-- Adds a new status to timelines. One of ADDS_PER_TRIM additions also trims its timeline, as in store/jobs/runner.py. A digest
-- of the status's id decides which, because with a plain count a regular author might never trim the timeline of a reader.
local function add_in_step(status, author, people, lists, asleep, ms)
  local draw = tonumber(redis.sha1hex(status):sub(1, 7), 16)
  change_in_step(author, people, lists, asleep, ms, function(timeline, place)
    local reply = redis.pcall('ZADD', timeline, status, status)
    if (draw + place) % ADDS_PER_TRIM == 0 then
      redis.pcall('ZREMRANGEBYRANK', timeline, 0, -(TIMELINE_MAX + 1))
    end
    return reply
  end)
end

-- Adds the newest statuses of an author to a home timeline. Returns false, without any change, if they are too many for
-- a step, if a job is at work on the two, or if the timeline cannot be written.
local function merge_in_step(owner, author)
  local is_busy = redis.call('EXISTS', KEY.job .. 'home-' .. owner .. '-' .. author) == 1
  if STEP_TIMELINES == 0 or is_busy then return false end
  local words, timeline, most = {}, HOME_TIMELINE .. '{' .. owner .. '}', math.min(TIMELINE_MAX, MOST_MERGED_IN_STEP + 1)
  local newest = redis.call('ZRANGE', KEY.profile .. author, 0, most - 1, 'REV')
  if #newest > MOST_MERGED_IN_STEP then return false end
  for at, status in ipairs(newest) do
    words[2 * at - 1], words[2 * at] = status, status
  end
  if #newest == 0 then return true end
  local reply = redis.pcall('ZADD', timeline, unpack(words))
  if type(reply) == 'table' then return false end
  redis.call('ZREMRANGEBYRANK', timeline, 0, -(TIMELINE_MAX + 1))
  return true
end

-- Adds a job, due at once, that fills a timeline ('home' or 'list') again and removes statuses that do not belong on it.
-- Reply: fence of the job.
function run.timeline_refill(timelines, owner)
  return enqueue_job(refill_job(timelines, owner), 'refill', now_ms() - JOB_GRACE_MS, 'owner', owner)
end

-- A user comes to read the home timeline. Records the visit if the last record is `stale_ms` old, and wakes the timeline
-- if it is asleep.
-- Reply: nothing if the timeline is complete; else the fence of the job that makes it, '' if another is at work.
function run.home_visit(uid, stale_ms)
  local now, reply, job = now_ms(), {}, refill_job('home', uid)
  local since, visited = redis.call('ZSCORE', KEY.asleep, uid), redis.call('ZSCORE', KEY.visited, uid)
  if since and tonumber(since) < 0 and redis.call('ZSCORE', KEY.due, job) then
    reply[1] = '' -- it wakes already; a job that is in no queue was left by a failure
  elseif since then
    reply[1] = enqueue_job(job, 'refill', now, 'owner', uid)
    redis.call('ZADD', KEY.asleep, to_text(-now), uid)
  end
  if not visited or now - tonumber(visited) >= tonumber(stale_ms) then
    redis.pcall('ZADD', KEY.visited, to_text(now), uid) -- a full Redis shows timelines nevertheless
  end
  return reply
end

-- Lets those home timelines fall asleep whose users have not come for `idle_ms`. Asleep ones that still exist get another
-- job that removes them. A user without a recorded visit counts as here now, so nobody falls asleep too early. For
-- `learn_ms` after the first call nobody falls asleep, because all servers must first learn that they must look
-- (store/timelines/home_visits.py). From REST on there are users who have a home timeline. Reply: how many fell asleep.
function run.homes_sleep(idle_ms, learn_ms, ...)
  local now, fallen = now_ms(), 0
  redis.call('HSETNX', KEY.meta, 'asleep', to_text(now))
  local may_sleep = now - tonumber(redis.call('HGET', KEY.meta, 'asleep')) >= tonumber(learn_ms)
  for at = REST, #ARGV do
    local uid, job = ARGV[at], refill_job('home', ARGV[at])
    local since, visited = redis.call('ZSCORE', KEY.asleep, uid), redis.call('ZSCORE', KEY.visited, uid)
    local is_idle = since and tonumber(since) > 0
      or not since and visited and now - tonumber(visited) >= tonumber(idle_ms)
    if not since and not visited then
      redis.call('ZADD', KEY.visited, to_text(now), uid)
    elseif may_sleep and is_idle and redis.call('EXISTS', KEY.job .. job) == 0 then
      redis.call('ZADD', KEY.asleep, 'NX', to_text(now), uid)
      enqueue_job(job, 'sleep', now - JOB_GRACE_MS, 'owner', uid)
      if not since then fallen = fallen + 1 end
    end
  end
  return fallen
end
