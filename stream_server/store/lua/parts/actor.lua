-- Who does it, a write's first argument, in good standing. Needs the part users.
local actor, refused = find_active_user(ARGV[3])
if refused then
  return refused
end
