-- The opening of every write, before anything else is looked at: the second asking gets the first one's answer. Needs
-- no other part.
local before = earlier_reply()
if before then
  return before
end
