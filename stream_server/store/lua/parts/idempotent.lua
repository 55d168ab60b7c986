-- The start of every write, before anything else: a repeated request gets the reply of the first one. Needs no other
-- part.
local before = earlier_reply()
if before then
  return before
end
