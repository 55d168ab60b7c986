-- Home and list timelines that the script of a write changes itself. So a post of an author with few readers needs no
-- job. One server must have all keys for this. On a cluster STEP_TIMELINES is 0, and scripts do not even know the names
-- HOME_TIMELINE and LIST_TIMELINE of these keys.

-- Whether these first readers are all readers of the author, and few enough.
local function fit_in_step(people, lists)
  return not shares_fan_out and #people + #lists < math.min(STEP_TIMELINES, FANOUT_BATCH_SIZE)
end

-- Calls `change(timeline, owner)` for the home timelines of the author and of these people, except those that are asleep,
-- and for the timelines of these lists. A timeline that cannot be written (its key has another type) gets a job, so that
-- its failure is seen as that of any job.
local function change_timelines(author, people, lists, asleep, ms, change)
  local is_asleep = {}
  for _, uid in ipairs(asleep) do is_asleep[uid] = true end

  local function try(kind, prefix, owner)
    local reply = change(prefix .. '{' .. owner .. '}', owner)
    if type(reply) == 'table' and reply.err then
      enqueue_job('refill-' .. kind .. '-' .. owner, 'refill', ms - JOB_GRACE_MS, 'owner', owner)
    end
  end
  if not is_asleep[author] then try('home', HOME_TIMELINE, author) end
  for _, uid in ipairs(people) do
    if not is_asleep[uid] then try('home', HOME_TIMELINE, uid) end
  end
  for _, list in ipairs(lists) do try('list', LIST_TIMELINE, list) end
end

-- Adds a new status to timelines. One of ADDS_PER_TRIM additions trims its timeline, as in store/jobs/runner.py. A digest of
-- the status decides together with the owner, so that no rhythm of posting trims a timeline never.
local function add_in_step(status, author, people, lists, asleep, ms)
  local draw = tonumber(redis.sha1hex(status):sub(1, 7), 16)
  change_timelines(author, people, lists, asleep, ms, function(timeline, owner)
    local reply = redis.pcall('ZADD', timeline, status, status)
    local number = tonumber(owner)
    if (draw + floor(number / 4096) + number) % ADDS_PER_TRIM == 0 then
      redis.pcall('ZREMRANGEBYRANK', timeline, 0, -(TIMELINE_MAX + 1))
    end
    return reply
  end)
end

-- Statuses that a follow adds to the home timeline in the same step, at most.
local MOST_MERGED_IN_STEP = 300

-- Adds the newest statuses of an author to a home timeline. Returns false, without any change, if they are too many for
-- a step, if a job is at work on the two, or if the timeline cannot be written.
local function merge_in_step(owner, author)
  local words, timeline = {}, HOME_TIMELINE .. '{' .. owner .. '}'
  if shares_fan_out or STEP_TIMELINES == 0 then return false end
  if redis.call('EXISTS', KEY.job .. 'home-' .. owner .. '-' .. author) == 1 then return false end
  local newest = redis.call('ZRANGE', KEY.profile .. author, 0, math.min(TIMELINE_MAX, MOST_MERGED_IN_STEP + 1) - 1, 'REV')
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

local function remove_in_step(status, author, people, lists, asleep, ms)
  change_timelines(author, people, lists, asleep, ms, function(timeline)
    return redis.pcall('ZREM', timeline, status)
  end)
end
