"""Running a server as processes: start, signals, several workers, the embedded Redis and log lines.

The one decision: **no process is ever left behind.** Each child notices the death of its parent through a socket or
pipe that the kernel closes, so even ``kill -9`` of the server ends its workers and its Redis.

``process``         runs one server process, or the supervisor with its workers
``supervisor``      starts, watches, restarts and stops worker processes; heartbeats of a worker
``watchdog``        ends a process whose event loop stands still
``listening``       the listening sockets of one process or of several on one port
``python_check``    tries known texts, because a Python with a faulty ``re`` would answer wrong in silence
``embedded_redis``  starts a private Redis for a server that has none, if nothing in its data folder forbids it
``append_only_file`` where the file of Redis is damaged after a power cut, and the cut of a damaged end
``redis_folder``    the files of that Redis: what forbids a start on them, and a view that changes nothing of them
``memory``          how much memory the process may use, by its machine and its control groups
``private_folder``  temporary folders, which the next server removes if their process was killed
``child_processes`` processes that never outlive this one
``run_file``        ``server.json`` in the data folder: where a running server is
``event_loop``      how long the event loop is blocked, turns for work of many clients, and long work beside it
``fair_queue``      lets a limited number of things happen at once, and the others wait in their order
``logs``            JSON log lines: bounded, redacted and throttled
``output_thread``   standard output and error that never make the process wait for a reader
"""
