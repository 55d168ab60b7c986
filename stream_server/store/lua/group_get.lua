-- parts: visibility groups
-- Read a group. Read only.
-- ARGV: 3 viewer, 4 group. Reply: JSON.
local group = find_visible_group(ARGV[3], ARGV[4])
return group and group_json(group) or refuse('NOT_FOUND group id')
