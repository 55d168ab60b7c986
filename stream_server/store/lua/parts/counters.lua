-- The counters, and the sets that they count: by kind of hash, the field and the prefix of the set's key.
local COUNTERS_BY_KIND = {
  user = {{'followers', KEY.followers}, {'following', KEY.following}, {'posts', KEY.profile}},
  status = {{'likes', KEY.likes}, {'comments', KEY.comments}, {'reposts', KEY.reposts}},
  list = {{'members', KEY.members}},
  group = {{'members', KEY.joined}},
}
local HASH_OF = {user = KEY.user, status = KEY.status, list = KEY.list, group = KEY.group}

-- What a counter says and what is so, as texts; nothing where they agree or there is no such hash.
local function find_counter_drift(kind, id, field, set)
  local said = redis.call('HMGET', HASH_OF[kind] .. id, 'id', 'uid', field)
  if not said[1] and not said[2] then
    return nil
  end
  local counted = to_text(redis.call('ZCARD', set .. id))
  if said[3] ~= counted then
    return said[3] or '', counted
  end
  return nil
end
