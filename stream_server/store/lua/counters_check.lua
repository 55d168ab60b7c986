-- Find counters that differ from the size of the sets that they count, and correct them if ARGV 4 is '1'.
-- ARGV: 3 kind of hash (user, status, list or group), 4 '1' to repair, from 5 on ids.
-- Reply: for each wrong counter {id, field, its value, the right value}.
local COUNTERS_BY_KIND = {
  user = {{'followers', KEY.followers}, {'following', KEY.following}, {'posts', KEY.profile}},
  status = {{'likes', KEY.likes}, {'comments', KEY.comments}, {'reposts', KEY.reposts}},
  list = {{'members', KEY.members}},
  group = {{'members', KEY.joined}},
}
local HASH_OF = {user = KEY.user, status = KEY.status, list = KEY.list, group = KEY.group}
local found = {}
for at = 5, #ARGV do
  local id, key = ARGV[at], HASH_OF[ARGV[3]] .. ARGV[at]
  for _, counter in ipairs(COUNTERS_BY_KIND[ARGV[3]]) do
    local field, set = counter[1], counter[2]
    local kept = redis.call('HMGET', key, 'id', 'uid', field)
    local right_value = (kept[1] or kept[2]) and to_text(redis.call('ZCARD', set .. id))
    if right_value and kept[3] ~= right_value then
      found[#found + 1] = {id, field, kept[3] or '', right_value}
      if ARGV[4] == '1' then redis.call('HSET', key, field, right_value) end
    end
  end
end
return found
