-- The counters of each kind of hash: field, and key prefix of the set that it counts.
local COUNTERS_BY_KIND = {
  user = {{'followers', KEY.followers}, {'following', KEY.following}, {'posts', KEY.profile}},
  status = {{'likes', KEY.likes}, {'comments', KEY.comments}, {'reposts', KEY.reposts}},
  list = {{'members', KEY.members}},
  group = {{'members', KEY.joined}},
}
local HASH_OF = {user = KEY.user, status = KEY.status, list = KEY.list, group = KEY.group}

-- The value of a counter and the right value, as text; nil if they are equal or the hash does not exist.
local function find_counter_drift(kind, id, field, set)
  local kept = redis.call('HMGET', HASH_OF[kind] .. id, 'id', 'uid', field)
  if not kept[1] and not kept[2] then
    return nil
  end
  local right_value = to_text(redis.call('ZCARD', set .. id))
  if kept[3] ~= right_value then
    return kept[3] or '', right_value
  end
  return nil
end
