-- What a verb changes in a hash: fields and their new values, from ARGV 5 on. Needs no other part.

-- A row takes the new values; gives whether anything of it is new to its hash.
local function apply_changes(row, key)
  local changed = false
  for at = 5, #ARGV, 2 do
    changed = changed or redis.call('HGET', key, ARGV[at]) ~= ARGV[at + 1]
    row[ARGV[at]] = ARGV[at + 1]
  end
  return changed
end
