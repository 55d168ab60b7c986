-- parts: visibility statuses notification_subjects notifications
-- How many notifications of a user are not read: read only. The user.
return unread(ARGV[3], read_mark(ARGV[3]))
