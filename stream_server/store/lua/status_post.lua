-- parts: idempotent users actor visibility statuses groups notification_subjects mentions notifications jobs status_posting
-- Post a status. ARGV: see parts/status_posting.lua. Reply: position; JSON of the status, fence of the fan-out job (''
-- in a group), the author's first followers and first lists.
return keep_reply(position, status, fence, people, lists)
