-- parts: notifications dependents
-- Find what remains of deleted objects, and repair it if ARGV 4 is '1'. Timelines are derived data on other shards, so
-- the caller deletes them. Kinds: 'jobs' (jobs that are neither due nor parked), 'statuses' (deleted statuses with
-- likes, comments, replies or reposts, and without a job that will delete them), 'users' and 'lists' (timelines whose
-- owner does not exist). A repaired job is due again. Of a status, one call deletes up to MAX_DEPENDENTS of each
-- set, and the next call deletes more.
-- ARGV: 3 kind, 4 '1' to repair, from 5 on ids. Reply: the ids of the leftovers.
local kind, repair = ARGV[3], ARGV[4] == '1'
local found = {}

local is_orphan = {
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
}
for at = 5, #ARGV do
  local id = ARGV[at]
  if is_orphan[kind](id) then
    found[#found + 1] = id
    if repair and kind == 'jobs' then
      redis.call('ZADD', KEY.due, to_text(now_ms()), id)
    elseif repair and kind == 'statuses' then
      delete_status_dependents(id, '')
    end
  end
end
return found
