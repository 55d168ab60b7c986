-- Who does it, a write's first argument, in good standing. Needs the part users.
local actor, refused = writer(ARGV[3])
if refused then
  return refused
end
