-- parts: visibility statuses comments
-- One comment as JSON, or nothing where a viewer may not see it: read only. Viewer, comment.
local comment, _, under = find_comment(ARGV[3], ARGV[4])
return comment and under ~= HIDDEN and comment.json or false
