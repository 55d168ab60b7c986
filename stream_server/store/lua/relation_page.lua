-- parts: job_passes
-- Read a page of a sorted set behind a position, lowest first. Read only.
-- ARGV: 3 key, 4 and 5 score and member of the position ('' for the beginning), 6 how many members. Reply: members and
-- scores.
return page_after(ARGV[3], ARGV[4], ARGV[5], tonumber(ARGV[6]))
