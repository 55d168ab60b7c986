-- parts: ingested statuses notifications jobs status_removal
-- Delete a status of another site. ARGV: 3 its foreign id. Reply: position and id; the author's id, fence of the job
-- that cleans up, the author's first followers and first lists.
local refused = replace_foreign_id(3, 'post', 'status', 'status')
if refused then return refused end
local row = find_status(ARGV[3])
if not row then return refuse('NOT_FOUND status status') end
local position, fence, people, lists = remove_status(row, next_position())
return keep_ingested(position .. ' ' .. row.id, row.uid, fence, people, lists)
