-- parts: users visibility paging
-- A piece of what two sets of users have in common, in the order of the first and with its `since`: read only. After
-- the walk's arguments: viewer, the two users whom the sets belong to, and the second set.
local viewer, one, other, second = ARGV[9], ARGV[10], ARGV[11], ARGV[12]
local WHOLE = 4096
local refused = refuse_unless_two_visible(viewer, one, other)
if refused then
  return refused
end

local function show_member(member, score)
  return can_see_user(viewer, member) and user_json(find_user(member)):sub(1, -2) .. ',"since":"' .. to_iso8601(tonumber(score)) .. '"}'
end

local down = PAGE_DIRECTION == 'before'
if math.min(redis.call('ZCARD', PAGE_KEY), redis.call('ZCARD', second)) > WHOLE then
  -- Neither is small: the first is walked, so many in one step, and each member looked up in the second.
  SCAN_MAX = WHOLE
  return read_page(function(member, score)
    return redis.call('ZSCORE', second, member) and show_member(member, score)
  end)
end

-- What they have in common is small: it is walked, from the place on, in place of the first.
local both = redis.call('ZINTER', 2, PAGE_KEY, second, 'WEIGHTS', 1, 0, 'WITHSCORES')
local ahead = {}
for at = down and #both - 1 or 1, down and 1 or #both - 1, down and -2 or 2 do
  local beyond = PAGE_AFTER_MEMBER ~= '' and tonumber(both[at + 1]) - tonumber(PAGE_AFTER_SCORE) or 0
  if (down and beyond <= 0) or (not down and beyond >= 0) then
    ahead[#ahead + 1] = both[at]
    ahead[#ahead + 1] = both[at + 1]
  end
end
read_batch = function(_, offset)
  return {unpack(ahead, 2 * offset + 1, math.min(2 * (offset + SCAN_BATCH), #ahead))}
end
return read_page(show_member)
