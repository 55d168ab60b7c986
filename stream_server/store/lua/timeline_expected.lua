-- parts: job_passes expected_statuses
-- Read which statuses belong on a timeline, one page of its authors at a time. Read only.
-- ARGV: 3 'home' or 'list', 4 owner, 5 and 6 score and member after which the page begins ('' and '' for the start).
-- Reply: the authors of the page with scores, and the newest statuses of these authors.
local page, newest = newest_of_sources(ARGV[3], ARGV[4], ARGV[5], ARGV[6])
return {page, newest}
