-- Take, prolong or leave the lease of the expiry of statuses. One process of all has it at a time.
-- ARGV: 3 the process, 4 how long the lease lasts (ms), from 5 on fields and values to keep, as of HSET.
-- Reply: the cursor of the scan, Redis' time (ms), the limit of the last complete round. Empty if another process has
-- the lease.
local now = now_ms()
local kept = redis.call('HMGET', KEY.expiry, 'holder', 'until')
if kept[1] and kept[1] ~= ARGV[3] and tonumber(kept[2]) > now then return {} end
redis.call('HSET', KEY.expiry, 'holder', ARGV[3], 'until', to_text(now + tonumber(ARGV[4])), unpack(ARGV, 5))
local progress = redis.call('HMGET', KEY.expiry, 'cursor', 'done')
return {progress[1] or '0', to_text(now), progress[2] or '0'}
