-- parts: sight statuses lists
-- Of these statuses, ids of a derived timeline, those that a viewer sees, as id and JSON: read only. Viewer, the list
-- whose timeline it is ('' for the viewer's home), how many at most, how many to pass over, then ids. Behind them, how
-- many ids were looked at, and how many passed over.
local viewer, list, most, skip = ARGV[3], ARGV[4], tonumber(ARGV[5]), tonumber(ARGV[6])
if list ~= '' and not seen_list(viewer, list) then
  return refuse('NOT_FOUND list id')
end
local found, looked, skipped = {}, 0, 0
for at = 7, #ARGV do
  looked = looked + 1
  local json = show(viewer, ARGV[at], SHOWN)
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
