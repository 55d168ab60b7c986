-- parts: sight statuses
-- Of these statuses those that a viewer sees, as id and JSON: read only. Viewer, how much sight is needed, how many
-- at most, how many to pass over, then ids. The last is how many ids were looked at.
local viewer, least, most, skip = ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local found, looked, skipped = {}, 0, 0
for at = 7, #ARGV do
  looked = looked + 1
  local json = show(viewer, ARGV[at], least)
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
