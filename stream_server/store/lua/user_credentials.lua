-- Who a login or an e-mail, in lower case, is: read only. Which of the two ('login' or 'email'), and its text. Answers
-- the id, the hash of the password ('' for none) and whether the user is suspended, or nothing.
local uid = redis.call('HGET', ARGV[3] == 'email' and KEY.emails or KEY.logins, ARGV[4])
if not uid then
  return false
end
local kept = redis.call('HMGET', KEY.user .. uid, 'password', 'suspended')
return {uid, kept[1] or '', kept[2] == '1' and 1 or 0}
