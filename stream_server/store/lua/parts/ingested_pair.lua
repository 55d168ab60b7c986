-- Puts own ids in the place of the foreign ids of two users, source and target (ARGV 3 and 4).
local unknown = replace_foreign_id(3, 'user', 'user', 'source') or replace_foreign_id(4, 'user', 'user', 'target')
if unknown then return unknown end
