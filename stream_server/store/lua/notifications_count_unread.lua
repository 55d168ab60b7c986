-- parts: visibility statuses notification_subjects notifications
-- Count the unread notifications of a user. Read only. ARGV: 3 user. Reply: the count.
return count_unread(ARGV[3], get_read_mark(ARGV[3]))
