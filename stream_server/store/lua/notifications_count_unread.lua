-- parts: visibility statuses notification_subjects notifications
-- How many notifications of a user are not read: read only. The user.
return count_unread(ARGV[3], get_read_mark(ARGV[3]))
