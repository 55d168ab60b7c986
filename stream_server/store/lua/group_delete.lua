-- parts: idempotent users actor visibility groups
-- Delete a group and all its memberships in one step. The maximum of 5,000 members takes 20 to 50 ms, in which Redis
-- does nothing else. Afterwards only their authors can see and delete the statuses posted in the group.
-- ARGV: 3 user, 4 group. Reply: position.
local group, denied = find_owned_group(ARGV[3], ARGV[4])
if denied then return denied end
local position, now = append_entry('group_delete', 'group:' .. group.id, '{"wire":{"group":{"id":"' .. group.id
  .. '","uid":"' .. group.uid .. '","deleted":true}}}', next_position())
redis.call('DEL', KEY.group .. group.id)
local members = redis.call('ZRANGE', KEY.joined .. group.id, 0, -1, 'WITHSCORES')
for at = 1, #members, 2 do
  -- As end_relation_with does, without the cap, because this must not take long. The user's next group brings the cap.
  redis.call('ZREM', KEY.groups .. members[at], group.id)
  redis.call('ZADD', KEY.ended .. members[at], now, group.id .. '-' .. members[at + 1])
end
for _, uid in ipairs(redis.call('ZRANGE', KEY.invited .. group.id, 0, -1)) do
  redis.call('ZREM', KEY.invitations .. uid, group.id)
end
redis.call('DEL', KEY.joined .. group.id, KEY.grouped .. group.id, KEY.invited .. group.id)
return keep_reply(position)
