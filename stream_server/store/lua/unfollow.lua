-- parts: idempotent users visibility actor source_and_target notifications jobs follows lists
-- Source no longer follows target, nor asks to, and takes them off a list of their own ('' for none). Already so:
-- nothing happens, and nobody is told.
local list
if ARGV[5] ~= '' then
  list, refused = own_list(source.id, ARGV[5], 'list')
  if refused then
    return refused
  end
end
local position, fence, list_fence = 'unchanged', '', ''
local ms, seq, n = tick()
if redis.call('ZSCORE', KEY.following .. source.id, target.id) then
  position, fence = cut(source, target, ms, seq, n)
elseif asks(source, target) then
  position = unask(source, target, ms, seq, n)
end
if list then
  position, list_fence = also(delist, list, target, position)
end
return answer(position, fence, list_fence, fence .. list_fence ~= '' and recent(target.id) or {})
