-- The start of every write: a repeated request gets the kept reply of the first request, and changes nothing. Needs no
-- other part.
local before = earlier_reply()
if before then
  return before
end
