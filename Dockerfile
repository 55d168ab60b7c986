# Two stages: the first has what it takes to build, the second only what it takes to run.
FROM python:3.12-slim-bookworm AS build
WORKDIR /src
RUN python -m venv /opt/stream-server
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
# The dependencies come before the code, so that a change of code does not install them again.
COPY requirements.lock ./
RUN /opt/stream-server/bin/pip install --require-hashes -r requirements.lock
COPY pyproject.toml README.md LICENSE ./
COPY filters filters
COPY stream_server stream_server
RUN /opt/stream-server/bin/pip install --no-deps --no-build-isolation .

FROM python:3.12-slim-bookworm
RUN useradd --system --uid 10001 --user-group --no-create-home stream-server \
    && install -d -o stream-server -g stream-server /data
COPY --from=build /opt/stream-server /opt/stream-server
ENV PATH=/opt/stream-server/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    STREAM_SERVER_HOST=0.0.0.0 \
    STREAM_SERVER_PORT=8000 \
    STREAM_SERVER_DATA_DIR=/data
USER stream-server
WORKDIR /data
VOLUME /data
EXPOSE 8000
# Alive, not ready: a server that waits for its Redis must not be restarted for it. A worker has no port to ask.
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s --retries=3 \
    CMD ["python", "-c", "import http.client as h, os, sys; 'worker' in open('/proc/1/cmdline').read().split('\\0') and sys.exit(); c = h.HTTPConnection('127.0.0.1', int(os.environ['STREAM_SERVER_PORT']), timeout=2); c.request('GET', '/healthz'); sys.exit(c.getresponse().status != 200)"]
# SIGTERM, the default, is the one that says goodbye to every stream.
CMD ["stream-server", "serve"]
