-- parts: job_passes expected_statuses
-- What belongs on a timeline, a page of authors at a time: read only. 'home' or 'list', its owner, and the place behind
-- which the page begins (score and member, '' and '' for the beginning). Gives the page and the newest of what they wrote.
local page, newest = newest_of_sources(ARGV[3], ARGV[4], ARGV[5], ARGV[6])
return {page, newest}
