-- The start of every script of an ingested line. KEY.ingested keeps the reply of each line under the line's name
-- `<op>:<foreign id>` forever. A reply begins with the position and ends with the own id. FINGERPRINT is the name of this
-- line. A line that came before gets its reply again, and changes nothing. A name with a comma is that of a state, such as
-- a pair of users: the state decides whether such a line changes something. The script answers with one text and no
-- array, because Redis would write each array to the socket by itself. The lines of the text are the values of other
-- writes. Needs no other part.
local ingested = redis.call('HGET', KEY.ingested, FINGERPRINT)
if ingested and not FINGERPRINT:find(',', 1, true) then return '1\n' .. ingested end

-- Many lines come together, and their fan-outs share transactions (store/timelines/syndication.py).
shares_fan_out = true

-- As in parts/idempotent_claim.lua. The line was looked for already.
local function claim_entry(...)
  return append_entry(...)
end

-- The own id of the user or status (`op` is 'user' or 'post') that the site calls `foreign_id`, or nil or false.
local function own_id(op, foreign_id)
  if op == 'user' then return redis.call('HGET', FOREIGN_USERS, foreign_id) end
  local kept = redis.call('HGET', KEY.ingested, op .. ':' .. foreign_id)
  return kept and kept:match('%d+$')
end

-- Puts the own id in the place of the foreign id ARGV[at]; '' stays. Returns the refusal of an unknown id, or nil.
local function replace_foreign_id(at, op, noun, parameter)
  if ARGV[at] == '' then return nil end
  local id = own_id(op, ARGV[at])
  if not id then return refuse('NOT_FOUND ' .. noun .. ' ' .. parameter) end
  ARGV[at] = id
end

-- Keeps the reply of this line and returns it. The values behind `reply` are for the first time only: texts, and lists
-- of words, which get blanks between them.
local function keep_ingested(reply, ...)
  redis.call('HSET', KEY.ingested, FINGERPRINT, reply)
  local more = {...}
  for at = 1, #more do
    if type(more[at]) == 'table' then more[at] = table.concat(more[at], ' ') end
  end
  return '0\n' .. table.concat({reply, unpack(more)}, '\n')
end

-- Keeps the reply of a line that found the state as it wants it, about the user `id`. The reply has the earlier position
-- or the head of the log.
local function keep_unchanged(id)
  return keep_ingested(ingested or table.concat({log_head()}, ' ') .. ' ' .. id)
end
