-- Leases: the right of one process of all to do something for a time (store/jobs/lease.py).

-- Takes, prolongs or gives back the lease `name`, for `ttl_ms`. `holder` is who asks, and `next_holder` who has it from now
-- on: the same, or '' for nobody. From REST on there are fields and values to keep, as of HSET. The expiry of statuses keeps
-- its lease and its progress in a hash of its own; all other leases are in one hash.
-- Reply: Redis' time (ms), then fields and values of the hash. Empty if another has the lease.
function run.lease_hold(name, holder, next_holder, ttl_ms, ...)
  local key, prefix, now = KEY.leases, name .. ':', now_ms()
  if name == 'expiry' then key, prefix = KEY.expiry, '' end
  local kept = redis.call('HMGET', key, prefix .. 'holder', prefix .. 'until')
  if kept[1] and kept[1] ~= holder and tonumber(kept[2]) > now then return {} end
  redis.call('HSET', key, prefix .. 'holder', next_holder, prefix .. 'until', to_text(now + tonumber(ttl_ms)),
    unpack(ARGV, REST))
  return {to_text(now), unpack(redis.call('HGETALL', key))}
end
