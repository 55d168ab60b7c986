-- Replies of writes, and how a repeated request gets the reply of the first one.
-- The reply of a write is the number of bytes that it appended to the log, a short value that Redis keeps for a while, and
-- values for the first call only. A repeated request gets REPEATED_REPLY and the kept value. A refusal is an error
-- `REFUSED <WORD> <noun> [<parameter>]`, of which store/redis/refusals.py makes the API's errors. The user is charged for
-- the bytes, so each call counts them in `appended`, the only variable that the functions of a script share.
local REQUEST_KEY = KEYS[1]
local FINGERPRINT = ARGV[1]
local KEEP_REPLY_MS = ARGV[2]

-- Ends the script with a refusal. It is an error and no value that each function returns: so no caller can forget to look
-- for it and write something. Functions that may refuse are called before anything has changed.
local function refuse(why)
  error(redis.error_reply('REFUSED ' .. why), 0)
end

-- The kept reply of the same request, or nil. Every write looks for it, because a repetition must not be refused on
-- account of what the first call changed.
local function earlier_reply()
  local kept = redis.call('GET', REQUEST_KEY)
  if not kept then return nil end
  local fingerprint, answer = kept:match('^(%S+) (.*)$')
  if fingerprint ~= FINGERPRINT then refuse('DUPLICATE Idempotency-Key') end
  return {REPEATED_REPLY, answer}
end

-- Keeps the value and returns the reply. A value that begins with `unchanged` is not kept: such a write has changed
-- nothing, so its repetition may look again. The values behind `value` are for the first call only. All that grows with
-- the request stands there: users must not fill Redis with kept replies.
local function keep_reply(value, ...)
  if value:sub(1, 9) ~= 'unchanged' then
    redis.call('SET', REQUEST_KEY, FINGERPRINT .. ' ' .. value, 'PX', KEEP_REPLY_MS)
  end
  return {appended, value, ...}
end

-- Claims a client's idempotency key for a batch of writes, before any part of the batch runs. Each part has a key of its
-- own. Without this claim, the client could use the key again for a longer batch, and the additional parts would run.
-- Reply: `begun`.
function write.batch_claim_key()
  return keep_reply('begun')
end
