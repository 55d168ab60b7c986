-- parts: idempotent
-- Claim a client's idempotency key for a batch of writes, before any part of the batch runs. Each part has a key of its
-- own. Without this claim, the client could use the key again for a longer batch, and the additional parts would run.
-- ARGV: only 1 and 2, see prelude.lua. Reply: `begun`.
return keep_reply('begun')
