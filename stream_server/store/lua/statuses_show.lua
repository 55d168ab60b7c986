-- parts: visibility statuses lists
-- Read those of the given statuses that a viewer may see. Read only. ARGV: 3 viewer, 4 lowest visibility, 5 list whose
-- timeline is read ('' for none), 6 maximum number of statuses, 7 number of visible statuses to skip, from 8 on ids.
-- Reply: ids and JSON, alternating; how many ids were examined; how many visible statuses were skipped.
local viewer, least, list, most, skip = ARGV[3], tonumber(ARGV[4]), ARGV[5], tonumber(ARGV[6]), tonumber(ARGV[7])
if list ~= '' and not find_visible_list(viewer, list) then return refuse('NOT_FOUND list id') end
local found, looked, skipped = {}, 0, 0
for at = 8, #ARGV do
  looked = looked + 1
  local json = find_visible_json(viewer, ARGV[at], least)
  if json and skipped < skip then
    skipped = skipped + 1
  elseif json then
    found[#found + 1] = ARGV[at]
    found[#found + 1] = json
    if #found >= 2 * most then break end
  end
end
return {found, looked, skipped}
