-- parts: notifications dependents
-- What is left of things that are gone. First word: 'jobs' for jobs that are neither due nor parked, 'statuses' for
-- statuses of which likes, comments, replies or reposts are kept and no job will see to it, 'users' or 'lists' for
-- owners of timelines who are not there. Second: '1' mends: the jobs are due, what hung on the statuses goes (up to
-- PASS of each set; the rest the next time); timelines are derived, so not here. Then ids. Gives those found.
local kind, mend = ARGV[3], ARGV[4] == '1'
local found = {}

local lost = {
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
  if lost[kind](id) then
    found[#found + 1] = id
    if mend and kind == 'jobs' then
      redis.call('ZADD', KEY.due, to_text(now_ms()), id)
    elseif mend and kind == 'statuses' then
      delete_status_dependents(id, '')
    end
  end
end
return found
