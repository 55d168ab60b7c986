-- parts: visibility statuses lists
-- Of these statuses those that a viewer sees, as id and JSON: read only. Viewer, how much sight is needed, the list on
-- whose timeline they stand ('' for none), how many at most, how many to pass over, then ids. Behind them, how many ids
-- were looked at, and how many passed over.
local viewer, least, list, most, skip = ARGV[3], tonumber(ARGV[4]), ARGV[5], tonumber(ARGV[6]), tonumber(ARGV[7])
if list ~= '' and not find_visible_list(viewer, list) then
  return refuse('NOT_FOUND list id')
end
local found, looked, skipped = {}, 0, 0
for at = 8, #ARGV do
  looked = looked + 1
  local json = find_visible_json(viewer, ARGV[at], least)
  if json and skipped < skip then
    skipped = skipped + 1
  elseif json then
    found[#found + 1] = ARGV[at]
    found[#found + 1] = json
    if #found >= 2 * most then
      break
    end
  end
end
return {found, looked, skipped}
