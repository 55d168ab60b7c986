-- Ends a mute or block of the user who acts, if there is one. ARGV: as in relation_change.lua. It stands before
-- source_and_target.lua: users may end what they began, also if the target is suspended or blocks them.
local other = ARGV[5] ~= 'mute' and find_user(ARGV[4])
local ended = other and change_relation(ARGV[5], actor, other)
if ended then return keep_reply(ended) end
