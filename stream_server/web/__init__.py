"""The HTTP server. Only this package and ``app`` import aiohttp's server.

The package defines the HTTP API: what a request may contain, who may send it, and the shape of every answer. The one
decision: **check the request completely before anything changes**. A handler sees only requests whose token, scope,
query, body and headers are valid.

``routes``      the URL table, on one screen
``route``       one row of the table
``http/``       one request: connection, middleware, authentication, query, body, validation, answers
``shared_text`` lets equal texts share one object
``limits/``     what one user or one address may ask: rates, connections, concurrent requests
``streaming/``  streams and long polling
``websocket/``  the streams over WebSocket
``api/``        the handlers of the native API, one noun a file
``webhooks/``   requests to URLs of users with the events of their subscriptions
``openapi/``    the URL table as an OpenAPI document
``dialects/``   the same streams in the protocols of Twitter's v1.1 and v2
"""
