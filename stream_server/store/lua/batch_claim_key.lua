-- parts: idempotent
-- Claim a client's idempotency key for a batch, before any part of the batch runs.
-- Each part has a key of its own. Without this claim, a longer batch under the same key would run its additional parts.
-- ARGV: none beyond the prelude's. Reply: `begun`.
return keep_reply('begun')
