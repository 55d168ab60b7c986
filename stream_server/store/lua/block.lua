-- parts: idempotent users actor source_and_target notifications jobs step_timelines follows groups blocks
-- Block a user. A repeated block changes nothing. ARGV: 3 source (the user who blocks), 4 target.
-- Reply: position or `unchanged`, and what block_user returns (parts/blocks.lua).
if is_blocking(source, target) then return keep_reply('unchanged', '', {}, '', {}) end
return keep_reply(block_user(source, target))
