-- parts: paging
-- Read a page of the audit log. Read only. ARGV: 3 to 8 see parts/paging.lua. Reply: the page with deeds as JSON.
return read_page(function(member)
  return redis.call('HGET', KEY.deeds, member)
end)
