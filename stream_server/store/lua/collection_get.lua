-- parts: visibility groups lists
-- Read one list or one group of users. Read only.
-- ARGV: 3 viewer, 4 list or group, 5 'list' or 'group'. Reply: the list or group as JSON.
local find, as_json = find_visible_group, group_json
if ARGV[5] == 'list' then find, as_json = find_visible_list, list_json end
local row = find(ARGV[3], ARGV[4])
return row and as_json(row) or refuse('NOT_FOUND ' .. ARGV[5] .. ' id')
