"""The figures of a running server for its operator: metrics, the state of all workers, the last errors.

The one decision: **counting is cheap, and reading does the work.** The parts of a server count in plain integers. Only
a request of an operator reads them, and then asks the other workers of this server over unix sockets.

``metrics``           the table of Prometheus metrics
``incidents``         counts how often each limit was met; remembers the last warnings and errors of the log
``tracing``           traces of write requests, and of the way of their entries
``worker_sockets``    lets the workers of one server ask each other
``operations``        the state and the metrics of all workers together
``history``           the figures of all workers in the last hour
"""
