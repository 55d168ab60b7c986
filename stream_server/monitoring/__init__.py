"""The figures of a running server for its operator: metrics, the state of all workers, the last errors.

The one decision: **counting is cheap, and reading does the work.** The parts of a server count in plain integers. Only
a request of an operator reads them, and then asks the other workers of this server over unix sockets.

``metrics``           the table of Prometheus metrics
``http_counters``     counts requests in plain integers
``delivery_latency``  the time from the log to the sockets
``limit_hits``        counts how often each limit was met
``recent_errors``     remembers the last warnings and errors of the log
``process_usage``     memory, processor time and open files of this process
``host_state``        the shapes of the answer of ``GET /v1/admin/operations``
``slow_clients``      finds the clients that are furthest behind
``tracing``           traces of write requests, and of the way of their entries
``trace_export``      sends the traces to a collector
``worker_sockets``    lets the workers of one server ask each other
``operations``        the state and the metrics of all workers together
"""
