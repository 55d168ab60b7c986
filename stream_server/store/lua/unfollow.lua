-- parts: idempotent users visibility actor source_and_target notifications jobs step_timelines follows lists
-- End the source's follow of the target, or withdraw the follow request. Without either, nothing changes.
-- ARGV: 3 source, 4 target, 5 a list of the source from which the target is also removed ('' for none).
-- Reply: position or `unchanged`; fence of the home timeline's job, fence of the list timeline's job ('' for none), the
-- target's newest statuses.
local list
if ARGV[5] ~= '' then
  list, refused = find_owned_list(source.id, ARGV[5], 'list')
  if refused then return refused end
end
local position, fence, list_fence = 'unchanged', '', ''
local ms, seq, n = next_position()
if redis.call('ZSCORE', KEY.following .. source.id, target.id) then
  position, fence = change_follow('unfollow', source, target, ms, seq, n)
elseif has_requested(source, target) then
  position = remove_follow_request(source, target, ms, seq, n)
end
if list then position, list_fence = change_list_too('list_remove', list, target, position) end
return keep_reply(position, fence, list_fence, fence .. list_fence ~= '' and newest_statuses(target.id) or {})
