-- Reads a page of a sorted set between two positions, each a (score, member), because members can have the same score.
-- ARGV: 3 key, 4 direction ('before': down, 'after': up), 5 and 6 the position to start behind (score '+inf' or '-inf'
-- and member '' for an end), 7 how many, 8 how many to skip. The script's own arguments follow from 9 on.
-- Reply: a list of score, member and JSON of each item; the position where the search stopped because it examined too
-- many members (empty if it did not), at which the caller continues.
local PAGE_KEY, PAGE_DIRECTION, PAGE_AFTER_SCORE, PAGE_AFTER_MEMBER = ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local PAGE_MAX, PAGE_SKIP = tonumber(ARGV[7]), tonumber(ARGV[8])
local SCAN_BATCH, SCAN_MAX = 64, 1024

local function is_after_start(score, member)
  if PAGE_AFTER_MEMBER == '' or tonumber(score) ~= tonumber(PAGE_AFTER_SCORE) then return true end
  if PAGE_DIRECTION == 'before' then return member < PAGE_AFTER_MEMBER end
  return member > PAGE_AFTER_MEMBER
end

-- The rank of the start position, counted from the end where reading begins; nil if the member is gone.
local function find_start_rank()
  local command = PAGE_DIRECTION == 'before' and 'ZREVRANK' or 'ZRANK'
  local score = PAGE_AFTER_MEMBER ~= '' and redis.call('ZSCORE', PAGE_KEY, PAGE_AFTER_MEMBER)
  return score and tonumber(score) == tonumber(PAGE_AFTER_SCORE) and redis.call(command, PAGE_KEY, PAGE_AFTER_MEMBER)
    or nil
end

-- Reads by rank if possible, because equal scores cost nothing then. Otherwise by score, and is_after_start skips equal
-- scores.
local function read_batch(rank, offset)
  local down = PAGE_DIRECTION == 'before'
  if rank then
    local from, upto = to_text(rank + 1 + offset), to_text(rank + offset + SCAN_BATCH)
    return redis.call(down and 'ZREVRANGE' or 'ZRANGE', PAGE_KEY, from, upto, 'WITHSCORES')
  end
  local command, limit = down and 'ZREVRANGEBYSCORE' or 'ZRANGEBYSCORE', down and '-inf' or '+inf'
  return redis.call(command, PAGE_KEY, PAGE_AFTER_SCORE, limit, 'WITHSCORES', 'LIMIT', to_text(offset), SCAN_BATCH)
end

-- Up to PAGE_MAX results of `pick(member, score, batch, at)`, as {score, member, result, …}, and the position where the
-- search stopped after SCAN_MAX members. `batch[at]` is the member. `lowest` is a member that belongs to the set without
-- being in it, below all others and scored by itself, or nil. A script may add values behind these.
local function read_page(pick, lowest)
  local found, offset, skipped, rank = {}, 0, 0, find_start_rank()

  -- Returns whether the page is full.
  local function take(member, score, batch, at)
    local made = is_after_start(score, member) and pick(member, score, batch, at)
    if made and skipped < PAGE_SKIP then
      skipped = skipped + 1
    elseif made then
      found[#found + 1] = score
      found[#found + 1] = member
      found[#found + 1] = made
    end
    return #found >= 3 * PAGE_MAX
  end

  local is_above = lowest and tonumber(PAGE_AFTER_SCORE) > tonumber(lowest)
  if lowest and PAGE_DIRECTION == 'after' and not is_above and take(lowest, lowest, {lowest}, 1) then
    return {found, {}}
  end
  while offset < SCAN_MAX do
    local batch = read_batch(rank, offset)
    for at = 1, #batch, 2 do
      if take(batch[at], batch[at + 1], batch, at) then return {found, {}} end
    end
    if #batch < 2 * SCAN_BATCH then
      if is_above and PAGE_DIRECTION == 'before' then take(lowest, lowest, {lowest}, 1) end
      return {found, {}}
    end
    offset = offset + SCAN_BATCH
    if offset >= SCAN_MAX then
      return {found, {batch[#batch], batch[#batch - 1], to_text(PAGE_SKIP - skipped)}}
    end
  end
end
