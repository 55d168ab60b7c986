"""The event streams over HTTP: long responses, long polling, and the parameters that a client may send.

The one decision: **every refusal comes before the first byte.** A request becomes a plan first: filters parsed, scopes
checked, start position found. Only then does the response begin, so later the server can end a stream only with a
`goodbye`. After the response head, the stream leaves the HTTP server, which saves about 10 KiB for each connection.

``stream``                the handlers of `/v1/stream` and `/v1/stream/user`; opens a planned stream
``long_poll``             the handler of `/v1/events`: one answer a request
``events_before``         the page of events before a position, of which long polling makes an answer
``parameters``            reads the parameters from query, form or JSON
``subscription_parser``   parses the filters, and remembers those of equal queries
``filtered_stream``       prepares a stream of `/v1/stream`: plans it, and takes over the subscription that it names
``stream_plan``           checks everything that a stream needs, and builds the hub's subscribe request
``looking_back``          lets a preview, a count or a search begin in the turn of its user, who pays for it
``followed_names``        puts ids in the place of names in ``follow``; refuses unknown names
``stream_start``          finds the start position on the log, from a cursor, a time or an age
``response_head``         encodes the head of a stream's response
``stream_connection``     the transport of an open stream, to which the hub writes
``acks``                  joins the acknowledgements of named subscriptions
``seats``                 the two ways to read a named subscription: alone, or a share of its parts
``leases``                renews what the streams of this process hold of shared subscriptions
``framing``               encodes messages as Server-Sent Events or as JSON lines
``compression``           compresses streams with gzip, once for all clients that share the bytes
"""
