-- parts: job_passes expected_statuses
-- Read what belongs on a timeline, one page of authors at a time. Read only.
-- ARGV: 3 'home' or 'list', 4 owner, 5 and 6 score and member after which the page begins ('' and '' for the start).
-- Reply: the page of authors with scores, and their newest statuses.
local page, newest = newest_of_sources(ARGV[3], ARGV[4], ARGV[5], ARGV[6])
return {page, newest}
