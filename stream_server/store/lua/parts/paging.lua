-- A piece of a sorted set between two places, each a (score, member): many things happen in one millisecond. A read
-- script that walks takes these arguments first: key, direction ('before': down, 'after': up), the place to start
-- behind (score '+inf' or '-inf' and no member for an end), how many, and how many to pass over.
local WALK_KEY, WALK_DIRECTION, WALK_SCORE, WALK_MEMBER = ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local WALK_MOST, WALK_SKIP = tonumber(ARGV[7]), tonumber(ARGV[8])
local WALK_BATCH, WALK_BUDGET = 64, 1024

local function behind(score, member)
  if WALK_MEMBER == '' or tonumber(score) ~= tonumber(WALK_SCORE) then
    return true
  end
  if WALK_DIRECTION == 'before' then
    return member < WALK_MEMBER
  end
  return member > WALK_MEMBER
end

-- Where the walk's start stands, counted from the end it walks away from; nil where nothing stands there any more.
local function walk_rank()
  local command = WALK_DIRECTION == 'before' and 'ZREVRANK' or 'ZRANK'
  local score = WALK_MEMBER ~= '' and redis.call('ZSCORE', WALK_KEY, WALK_MEMBER)
  return score and tonumber(score) == tonumber(WALK_SCORE) and redis.call(command, WALK_KEY, WALK_MEMBER) or nil
end

-- By rank where it can be: ties cost nothing then. By score where the start is gone, and its ties are passed over.
local function walk_batch(rank, offset)
  if rank then
    local from = text(rank + 1 + offset)
    local upto = text(rank + offset + WALK_BATCH)
    if WALK_DIRECTION == 'before' then
      return redis.call('ZRANGE', WALK_KEY, from, upto, 'REV', 'WITHSCORES')
    end
    return redis.call('ZRANGE', WALK_KEY, from, upto, 'WITHSCORES')
  elseif WALK_DIRECTION == 'before' then
    return redis.call('ZRANGE', WALK_KEY, WALK_SCORE, '-inf', 'BYSCORE', 'REV', 'LIMIT', text(offset), WALK_BATCH,
      'WITHSCORES')
  end
  return redis.call('ZRANGE', WALK_KEY, WALK_SCORE, '+inf', 'BYSCORE', 'LIMIT', text(offset), WALK_BATCH, 'WITHSCORES')
end

-- Up to WALK_MOST of what `pick(member, score)` makes of members, as {score, member, made, …}, and the place where it
-- stopped for having looked at too many: whoever asked goes on from there. A verb may add what else it has to say.
local function walk(pick)
  local found, offset, skipped, rank = {}, 0, 0, walk_rank()
  while offset < WALK_BUDGET do
    local batch = walk_batch(rank, offset)
    for at = 1, #batch, 2 do
      local member, score = batch[at], batch[at + 1]
      local made = behind(score, member) and pick(member, score)
      if made and skipped < WALK_SKIP then
        skipped = skipped + 1
      elseif made then
        found[#found + 1] = score
        found[#found + 1] = member
        found[#found + 1] = made
        if #found >= 3 * WALK_MOST then
          return {found, {}}
        end
      end
    end
    if #batch < 2 * WALK_BATCH then
      return {found, {}}
    end
    offset = offset + WALK_BATCH
    if offset >= WALK_BUDGET then
      return {found, {batch[#batch], batch[#batch - 1], text(WALK_SKIP - skipped)}}
    end
  end
end
