-- parts: jobs
-- Finish the fan-outs of new statuses, for each of which one pass has written the timelines of all readers. Does the
-- same as job_advance.lua for each, but what several jobs touch is read and changed once.
-- ARGV: from 3 on, job and fence of each. Reply: a word for each: 'stale', 'moved' or 'done', as there.
local words, keys, ids, left, finished = {}, {}, {}, {}, {}
for at = 3, #ARGV, 2 do
  local key, word = KEY.job .. ARGV[at], 'stale'
  local job = redis.call('HMGET', key, 'fence', 'uid', 'left')
  local author = job[2]
  if job[1] == ARGV[at + 1] then
    left[author] = left[author] or author_versions(author)
    word = left[author] == job[3] and 'done' or 'moved'
  end
  if word == 'done' then
    keys[#keys + 1], ids[#ids + 1], finished[author] = key, ARGV[at], (finished[author] or 0) + 1
  end
  words[#words + 1] = word
end
-- A full Redis refuses the first command, as it refused the writes of the pass.
for author, count in pairs(finished) do
  redis.call('HINCRBY', KEY.user .. author, 'busy', to_text(-count))
end
if #keys > 0 then
  redis.call('DEL', unpack(keys))
  redis.call('ZREM', KEY.due, unpack(ids))
end
return words
