-- parts: visibility talks
-- A talk as JSON: read only. Viewer, and its id.
local talk = find_own_talk(ARGV[3], ARGV[4])
return talk and talk_json(ARGV[3], talk) or refuse('NOT_FOUND talk id')
