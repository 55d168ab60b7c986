-- parts: visibility statuses lists
-- Read those of the given statuses that a viewer may see. Read only. ARGV: 3 viewer, 4 lowest visibility, 5 list whose
-- timeline is read ('' for none), 6 maximum number of statuses, 7 number of visible statuses to skip, from 8 on ids.
-- Reply: ids and JSON, alternating; how many visible statuses were skipped.
local viewer, least, list, most, skip = ARGV[3], tonumber(ARGV[4]), ARGV[5], tonumber(ARGV[6]), tonumber(ARGV[7])
if list ~= '' and not find_visible_list(viewer, list) then return refuse('NOT_FOUND list id') end
local found, shown, skipped, at = {}, 0, 0, 8
while at <= #ARGV and shown < most do
  -- As many as are wanted, because most statuses are visible.
  local upto = math.min(#ARGV, at + skip - skipped + most - shown - 1)
  for i, row in ipairs(read_statuses(viewer, ARGV, at, upto, 1)) do
    local json = row and shown_json(viewer, least, unpack(row, 1, 8))
    if json and skipped < skip then
      skipped = skipped + 1
    elseif json then
      found[2 * shown + 1], found[2 * shown + 2] = ARGV[at + i - 1], json
      shown = shown + 1
    end
  end
  at = upto + 1
end
return {found, skipped}
