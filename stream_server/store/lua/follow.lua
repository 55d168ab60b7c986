-- parts: idempotent users visibility actor source_and_target notifications jobs step_timelines follows lists
-- Follow a user, or request to follow a protected user. A repetition changes nothing and sends no notification.
-- ARGV: 3 source, 4 target, 5 a list of the source to which the target is also added ('' for none).
-- Reply: position or `unchanged`, followed by ` requested` for a request; fence of the home timeline's job, fence of
-- the list timeline's job ('' for none), the target's newest statuses.
if redis.call('ZSCORE', KEY.blocks .. source.id, target.id) then return refuse('BLOCKED id') end
local list
if ARGV[5] ~= '' then
  list, refused = find_owned_list(source.id, ARGV[5], 'list', target.id)
  if refused then return refused end
end
local following = redis.call('ZSCORE', KEY.following .. source.id, target.id)
local asking, requested = not following and target.protected, not following and has_requested(source, target)
if not following and not requested and follows_too_many(source) then return refuse('TOO_MANY following id') end
local position, fence, list_fence = 'unchanged', '', ''
known_standing[source.id] = {source.protected and '1' or '0', '0'}
local ms, seq, n = next_position()
if asking and not requested then
  position = add_follow_request(source, target, ms, seq, n)
elseif not following and not asking then
  position, fence, ms, seq, n = change_follow('follow', source, target, ms, seq, n)
  if requested then clear_follow_request(source, target) end
  notify(target.id, 'follow', source, '', '', ms, seq, n)
end
if list then position, list_fence = change_list_too('list_add', list, target, position) end
return keep_reply(position .. (asking and ' requested' or ''), fence, list_fence,
  fence .. list_fence ~= '' and newest_statuses(target.id) or {})
