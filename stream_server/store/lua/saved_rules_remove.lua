-- parts: idempotent users actor
-- Remove saved filter rules of a user.
-- ARGV: 3 user, 4 '1' for a dry run, from 5 on ids. Reply: position or `unchanged`; the ids that exist.
local key, ids = KEY.rules .. actor.id, {}
for i = 5, #ARGV do
  if redis.call('HEXISTS', key, ARGV[i]) == 1 then ids[#ids + 1] = ARGV[i] end
end
local found_ids = table.concat(ids, ' ')
if #ids == 0 or ARGV[4] == '1' then return keep_reply('unchanged', found_ids) end
local position = append_entry('rules', AUDIENCE_NONE, '{"wire":{"uid":"' .. actor.id .. '","added":[],"removed":["'
  .. table.concat(ids, '","') .. '"]}}', next_position())
redis.call('HDEL', key, unpack(ids))
return keep_reply(position, found_ids)
