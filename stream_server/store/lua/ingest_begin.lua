-- parts: audit
-- Record in the audit log that a token ingests, once for each token. ARGV: 3 user of the token, 4 digest of its id.
if redis.call('HSETNX', KEY.ingested, 'token:' .. ARGV[4], '1') == 1 then audit(ARGV[3], 'ingest', ARGV[3], ARGV[4]) end
return 0
