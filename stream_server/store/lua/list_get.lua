-- parts: visibility lists
-- A list as JSON: read only. Viewer, and its id.
local list = find_visible_list(ARGV[3], ARGV[4])
return list and list_json(list) or refuse('NOT_FOUND list id')
