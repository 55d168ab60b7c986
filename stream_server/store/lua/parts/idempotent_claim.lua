-- The start of a write that begins with one entry of the log. It keeps its reply before it writes anything else, and only if
-- none is kept. So it need not look for an earlier reply first, as parts/idempotent.lua does. Needs no other part.
claims_reply = true

-- Appends the first entry of the step and keeps its position as the reply. Returns the position and the entry's time as
-- text; or nil and the earlier reply. If the log refuses the entry, nothing is written.
local function claim_entry(kind, audience, body, ms, seq, n)
  local reply = FINGERPRINT .. ' ' .. position_text(ms, seq, n)
  if not redis.call('SET', REQUEST_KEY, reply, 'PX', KEEP_REPLY_MS, 'NX') then return nil, earlier_reply() end
  local done, position, posted = pcall(append_entry, kind, audience, body, ms, seq, n)
  if done then return position, posted end
  redis.call('DEL', REQUEST_KEY)
  error(position, 0)
end
