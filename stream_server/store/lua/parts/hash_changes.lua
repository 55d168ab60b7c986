-- The changes that a script makes to a hash: fields and new values from ARGV 5 on. Needs no other part.

-- Puts the new values into a row. Returns whether any of them differs from the hash.
local function apply_changes(row, key)
  local changed = false
  for at = 5, #ARGV, 2 do
    changed = changed or redis.call('HGET', key, ARGV[at]) ~= ARGV[at + 1]
    row[ARGV[at]] = ARGV[at + 1]
  end
  return changed
end
