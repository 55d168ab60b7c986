-- parts: once people sight actor couple notices jobs follows lists
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
  if position ~= 'unchanged' then
    ms, seq, n = tick()
  end
  local delisted, made = delist(list, target, ms, seq, n)
  if delisted then
    position, list_fence = position == 'unchanged' and delisted or position, made
  end
end
return answer(position, fence, list_fence, fence .. list_fence ~= '' and recent(target.id) or {})
