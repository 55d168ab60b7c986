"""The common parts of every HTTP request and response: connections, authentication, parsing and error answers.

The one decision: **each concern of HTTP is implemented once, and before the handler runs.** A handler gets a request
whose query, token and scope are checked. It returns a response or raises an `ApiError`, which the middleware turns into
the one error shape. This package imports neither `streaming` nor `api`, `openapi` or `dialects`.

``front_door``           accepts connections, opens streams, hands other requests to aiohttp; stops a server
``connection``           one accepted socket: its deadlines, its account and its end
``connection_states``    the states of a connection: what each may receive, its deadline, whether it may be closed
``request_cycle``        a connection without its socket: its state, and the bytes that it holds
``usual_request``        reads a usual request without aiohttp
``http_handler``         aiohttp's part of a connection, with the server's errors and its way to the routes
``chunks``               reads the chunks of a body, and makes fewer of them
``connection_timeouts``  the time limits of one connection; what the kernel knows of the client's machine
``opening``              the states of a stream that opens: what its code may wait for
``middleware``         request id, error answers, metrics; checks the query, the token and the scope of each request
``authentication``     checks a bearer token or a ticket; decides who may read metrics and the like
``request_limits``     applies the limits of a route to a request, and makes the ``RateLimit`` headers
``cors``               lets pages of other origins read and write
``qualities``          reads what a client accepts, such as media types, each with a quality
``query``              parses a query string into a msgspec struct
``line_reader``        reads the lines of a body while it arrives
``body``               reads a request body within limits of size, time and nesting
``fields``             types of body and answer members, with their limits
``validation``         decodes a JSON body, and names the invalid member; the ``Idempotency-Key`` header
``responses``          JSON answers and the one shape of errors
``paging``             the query parameters and answers of paged lists
``static_files``       the files of pages in memory
``module_preloads``    lets a browser ask for all modules of a page at once
``moved_pages``        leads from addresses that people try to the page that they mean
``app_keys``           typed keys of the values that an app and a request carry
"""
