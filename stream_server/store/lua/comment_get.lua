-- parts: visibility statuses comments
-- Read one comment. Read only. ARGV: 3 viewer, 4 comment. Reply: JSON.
local comment, _, under = find_comment(ARGV[3], ARGV[4])
return comment and under ~= HIDDEN and comment.json or refuse('NOT_FOUND comment')
