-- parts: visibility talks
-- Read one talk (a direct conversation). Read only. ARGV: 3 viewer, 4 talk. Reply: the talk as JSON.
local talk = find_own_talk(ARGV[3], ARGV[4])
return talk and talk_json(ARGV[3], talk) or refuse('NOT_FOUND talk id')
