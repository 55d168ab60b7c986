-- Puts own ids in the place of the foreign ids of a status: author, answered and reposted status (ARGV 3 to 5).
local unknown = replace_foreign_id(3, 'user', 'user', 'author') or replace_foreign_id(4, 'post', 'status', 'in_reply_to')
  or replace_foreign_id(5, 'post', 'status', 'origin')
if unknown then return unknown end
