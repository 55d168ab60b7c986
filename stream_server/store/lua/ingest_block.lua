-- parts: ingested ingested_pair users notifications jobs step_timelines follows groups blocks
-- Block a user, as another site says. Two users may block each other there, and suspended users block and are blocked.
-- ARGV: 3 source and 4 target, foreign ids. Reply: position and the target's id; the source's id and what block_user
-- returns (parts/blocks.lua).
local source, target = find_user(ARGV[3]), find_user(ARGV[4])
if is_blocking(source, target) then return keep_unchanged(target.id) end
local position, fence, statuses, fence_back, statuses_back = block_user(source, target)
return keep_ingested(position .. ' ' .. target.id, source.id, fence, statuses, fence_back, statuses_back)
