-- Find a user by login or e-mail address. Read only. ARGV: 3 'login' or 'email', 4 its value in lower case.
-- Reply: id, password hash ('' for none), 1 if the user is suspended, otherwise 0; nil for an unknown user.
local uid = redis.call('HGET', ARGV[3] == 'email' and KEY.emails or KEY.logins, ARGV[4])
if not uid then return false end
local kept = redis.call('HMGET', KEY.user .. uid, 'password', 'suspended')
return {uid, kept[1] or '', kept[2] == '1' and 1 or 0}
