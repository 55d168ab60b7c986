-- parts: notifications dependents
-- Find what remains of deleted things, and repair it if asked.
-- Kinds: 'jobs' for jobs that are neither due nor parked; 'statuses' for deleted statuses that have likes, comments,
-- replies or reposts and no job that will delete them; 'users' and 'lists' for owners of timelines that do not exist.
-- A repaired job is due again. Of a status, up to FANOUT_BATCH_SIZE of each set are deleted; the next call deletes
-- more. This script does not touch timelines, because they are derived data.
-- ARGV: 3 kind, 4 '1' to repair, from 5 on ids. Reply: the ids that were found.
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
