-- parts: users visibility paging
-- Read a page of the users who are in both of two sets. Order and `since` are those of the first set. Read only.
-- ARGV: 3 to 8 see parts/paging.lua (3 is the key of the first set), 9 viewer, 10 and 11 the users who own the sets, 12
-- key of the second set. Reply: the page with users as JSON, see parts/paging.lua.
local viewer, first_uid, second_uid, second_key = ARGV[9], ARGV[10], ARGV[11], ARGV[12]
local MAX_MEMBERS = 4096
local refused = refuse_unless_two_visible(viewer, first_uid, second_uid)
if refused then return refused end

local function show_member(member, score)
  return can_see_user(viewer, member) and user_since_json(member, score)
end

local down = PAGE_DIRECTION == 'before'
if math.min(redis.call('ZCARD', PAGE_KEY), redis.call('ZCARD', second_key)) > MAX_MEMBERS then
  -- Both are large: examine MAX_MEMBERS of the first set in one step, and look each member up in the second.
  SCAN_MAX = MAX_MEMBERS
  return read_page(function(member, score)
    return redis.call('ZSCORE', second_key, member) and show_member(member, score)
  end)
end

-- The intersection is small: page through it, from the start position on, instead of the first set.
local both = redis.call('ZINTER', 2, PAGE_KEY, second_key, 'WEIGHTS', 1, 0, 'WITHSCORES')
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
