-- The user who acts, ARGV 3. Refused if the user is unknown or suspended.
local actor, refused = find_active_user(ARGV[3])
if refused then return refused end
