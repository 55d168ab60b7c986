-- parts: idempotent users actor
-- Rules of a user are gone: user, '1' if they only would be, then their ids. Answers those that are there, behind the
-- position of the entry, or behind `unchanged`.
local key, gone = KEY.rules .. actor.id, {}
for i = 5, #ARGV do
  if redis.call('HEXISTS', key, ARGV[i]) == 1 then
    gone[#gone + 1] = ARGV[i]
  end
end
local told = table.concat(gone, ' ')
if #gone == 0 or ARGV[4] == '1' then
  return keep_reply('unchanged ' .. told)
end
local ms, seq, n = next_position()
local position = append_entry('rules', AUDIENCE_NONE, '{"wire":{"uid":"' .. actor.id .. '","added":[],"removed":["'
  .. table.concat(gone, '","') .. '"]}}', ms, seq, n)
redis.call('HDEL', key, unpack(gone))
return keep_reply(position .. ' ' .. told)
