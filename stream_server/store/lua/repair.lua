-- What repair finds and mends.

-- Finds counters that differ from the size of the sets that they count, and corrects them if `repair` is '1'. `kind` is
-- that of the hash: user, status, list or group. ARGV has from 5 on ids.
-- Reply: for each wrong counter {id, field, its value, the right value}.
function run.counters_check(kind, repair)
  local counters = ({
    user = {{'followers', KEY.followers}, {'following', KEY.following}, {'posts', KEY.profile}},
    status = {{'likes', KEY.likes}, {'comments', KEY.comments}, {'reposts', KEY.reposts}},
    list = {{'members', KEY.members}},
    group = {{'members', KEY.joined}},
  })[kind]
  local prefix = ({user = KEY.user, status = KEY.status, list = KEY.list, group = KEY.group})[kind]
  local found = {}
  for at = 5, #ARGV do
    local id, key = ARGV[at], prefix .. ARGV[at]
    for _, counter in ipairs(counters) do
      local field, set = counter[1], counter[2]
      local kept = redis.call('HMGET', key, 'id', 'uid', field)
      local right_value = (kept[1] or kept[2]) and to_text(redis.call('ZCARD', set .. id))
      if right_value and kept[3] ~= right_value then
        found[#found + 1] = {id, field, kept[3] or '', right_value}
        if repair == '1' then redis.call('HSET', key, field, right_value) end
      end
    end
  end
  return found
end

-- Finds what remains of deleted objects, and repairs it if `repair` is '1'. Timelines are derived data on other shards, so
-- the caller deletes them. Kinds: 'jobs' (jobs that are neither due nor parked), 'statuses' (deleted statuses with
-- likes, comments, replies or reposts, and without a job that will delete them), 'users' and 'lists' (timelines whose
-- owner does not exist). A repaired job is due again. Of a status, one call deletes up to MAX_DEPENDENTS of each
-- set, and the next call deletes more. ARGV has from 5 on ids. Reply: the ids of the leftovers.
function run.orphans_check(kind, repair)
  local is_orphan = ({
    jobs = function(id)
      return redis.call('EXISTS', KEY.job .. id) == 1 and not redis.call('ZSCORE', KEY.due, id)
        and not redis.call('ZSCORE', KEY.parked, id)
    end,
    statuses = function(id)
      return redis.call('EXISTS', KEY.status .. id, KEY.job .. 'status-' .. id) == 0
        and redis.call('EXISTS', KEY.likes .. id, KEY.comments .. id, KEY.replies .. id, KEY.reposts .. id) > 0
    end,
    users = function(id)
      return redis.call('EXISTS', KEY.user .. id) == 0
    end,
    lists = function(id)
      return redis.call('EXISTS', KEY.list .. id, KEY.job .. 'drop-list-' .. id) == 0
    end,
  })[kind]
  local found = {}
  for at = 5, #ARGV do
    local id = ARGV[at]
    if is_orphan(id) then
      found[#found + 1] = id
      if repair == '1' and kind == 'jobs' then
        redis.call('ZADD', KEY.due, to_text(now_ms()), id)
      elseif repair == '1' and kind == 'statuses' then
        delete_status_dependents(id, '')
      end
    end
  end
  return found
end
