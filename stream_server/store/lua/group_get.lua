-- parts: visibility groups
-- A group as JSON: read only. Viewer, and its id.
local group = find_visible_group(ARGV[3], ARGV[4])
return group and group_json(group) or refuse('NOT_FOUND group id')
