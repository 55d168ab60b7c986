-- Puts own ids in the place of the foreign ids of two users, source and target (ARGV 3 and 4).
local unknown = replace_foreign_id(3, 'user', 'user', 'source') or replace_foreign_id(4, 'user', 'user', 'target')
if unknown then return unknown end

-- Keeps the reply of a line that found the pair of users as it wants it. The reply has the earlier position or the head
-- of the log.
local function keep_unchanged(target_id)
  local head, head_number = log_head()
  return keep_ingested(ingested or head .. ' ' .. head_number .. ' ' .. target_id)
end
