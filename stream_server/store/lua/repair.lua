-- What repair finds and mends.

-- Finds counters that differ from the size of the sets that they count, and corrects them if `repair` is '1'. `kind` is
-- that of the hash: user, status, list or group. From REST on there are ids.
-- Reply: for each wrong counter {id, field, its value, the right value}.
function run.counters_check(kind, repair, ...)
  local counters = ({
    user = {{'followers', KEY.followers}, {'following', KEY.following}, {'posts', KEY.profile}},
    status = {{'likes', KEY.likes}, {'comments', KEY.comments}, {'reposts', KEY.reposts}},
    list = {{'members', KEY.members}},
    group = {{'members', KEY.joined}},
  })[kind]
  local prefix = ({user = KEY.user, status = KEY.status, list = KEY.list, group = KEY.group})[kind]
  local found = {}
  for at = REST, #ARGV do
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

-- Puts users into the index of names. From REST on there are id, profile card and beginnings of login and name of each user.
-- One whose card is another one by now has them already. Reply: nothing.
function run.names_store(...)
  for at = REST, #ARGV, 3 do
    if redis.call('HGET', KEY.user .. ARGV[at], 'card') == ARGV[at + 1] then store_names(ARGV[at], ARGV[at + 2]) end
  end
end

-- Deletes up to MAX_DEPENDENTS of each set that a deleted status has left, unless a job will do it. Reply: nothing.
function run.leftovers_delete(id)
  if redis.call('EXISTS', KEY.status .. id, KEY.job .. 'status-' .. id) == 0 then delete_status_dependents(id, '') end
end
