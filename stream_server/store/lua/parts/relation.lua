-- Mutes a user, ends a mute, or ends a block: the source does this to the target. `kind` is 'mute', 'unmute' or 'unblock'.
-- Only the source gets the log entry. Ending a block does not restore follows. Returns the position, or nil if nothing
-- changes.
local function change_relation(kind, source, target)
  local key = (kind == 'unblock' and KEY.blocks or KEY.mutes) .. source.id
  local is_new = not redis.call('ZSCORE', key, target.id)
  if is_new ~= (kind == 'mute') then return nil end
  local position, now = append_entry(kind, 'users:' .. source.id, pair_body(source, target), next_position())
  set_member(key, target.id, is_new and now)
  if kind == 'unblock' then set_member(KEY.blockers .. target.id, source.id) end
  return position
end
