-- parts: visibility lists
-- Read a list. Read only.
-- ARGV: 3 viewer, 4 list. Reply: JSON.
local list = find_visible_list(ARGV[3], ARGV[4])
return list and list_json(list) or refuse('NOT_FOUND list id')
