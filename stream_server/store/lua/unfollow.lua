-- parts: idempotent users visibility actor source_and_target notifications jobs follows lists
-- Source no longer follows target, nor asks to, and takes them off a list of their own ('' for none). Already so:
-- nothing happens, and nobody is told.
local list
if ARGV[5] ~= '' then
  list, refused = find_owned_list(source.id, ARGV[5], 'list')
  if refused then
    return refused
  end
end
local position, fence, list_fence = 'unchanged', '', ''
local ms, seq, n = next_position()
if redis.call('ZSCORE', KEY.following .. source.id, target.id) then
  position, fence = remove_follow(source, target, ms, seq, n)
elseif has_requested(source, target) then
  position = remove_follow_request(source, target, ms, seq, n)
end
if list then
  position, list_fence = change_list_too(remove_list_member, list, target, position)
end
return keep_reply(position, fence, list_fence, fence .. list_fence ~= '' and newest_statuses(target.id) or {})
