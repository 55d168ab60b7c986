-- parts: idempotent users actor visibility jobs lists
-- Delete a list. From this step on no user sees it. A job later deletes its timeline, its members, and its id in the
-- members' `listed` sets. ARGV: 3 user, 4 list. Reply: position.
local list, denied = find_owned_list(ARGV[3], ARGV[4], 'id')
if denied then return denied end
local ms, seq, n = next_position()
local position = append_entry('list_delete', 'users:' .. list.uid, '{"wire":{"list":{"id":"' .. list.id .. '","uid":"'
  .. list.uid .. '","deleted":true}}}', ms, seq, n)
redis.call('ZREM', KEY.lists .. list.uid, list.id)
redis.call('DEL', KEY.list .. list.id)
enqueue_job('drop-list-' .. list.id, 'drop', ms, 'owner', list.id)
return keep_reply(position)
