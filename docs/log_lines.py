"""The log lines of the server: those that the code writes, and what each one means.

``tables.py`` makes the tables of ``reference/logs.md`` from both. The test suite fails if a line has no meaning, or a
meaning has no line.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]

LEVELS = ("error", "warning", "info", "debug")

_METHODS = {**{level: level for level in LEVELS}, "exception": "error", "log": "warning or debug", "_report": "warning"}
"""The level of each call. ``_report`` is how the supervisor writes warnings."""

_FORMAT = re.compile(r"%%|%[-+# 0]*\d*(?:\.\d+)?[a-z]")

VALUE = "…"
"""Stands in a message for a value."""


class LogLine(NamedTuple):
    """A line that the code writes: its level, its logger, and the message with `VALUE`s."""

    level: str
    logger: str
    message: str


OTHER_LOGGERS = {"self._report": "stream_server.runtime.process", "self.logger": "aiohttp.server"}
"""The loggers of the calls that do not use that of their module: the supervisor's, and the one of aiohttp."""


def log_lines() -> list[LogLine]:
    """Return the log lines in the code, the most severe ones first. Raises ValueError for one that cannot be read."""
    found = {line for package in ("filters", "stream_server") for line in _lines_of(ROOT / package)}
    return sorted(found, key=lambda line: (LEVELS.index(line.level.split()[0]), line.logger, line.message))


def _lines_of(package: Path) -> Iterator[LogLine]:
    for file in sorted(package.rglob("*.py")):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        module = file.relative_to(ROOT).with_suffix("").parts
        for function in ast.walk(tree):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                for call in ast.walk(function):
                    if isinstance(call, ast.Call) and _writes_line(call):
                        method = call.func.attr  # type: ignore[attr-defined]  # looked at above
                        message = call.args[1 if method == "log" else 0]
                        owner = ast.unparse(call.func).removesuffix("" if method == "_report" else f".{method}")
                        logger = OTHER_LOGGERS.get(owner, ".".join(module))
                        yield LogLine(_METHODS[method], logger, _text(message, (function, tree)))


def _writes_line(call: ast.Call) -> bool:
    """Return whether a call writes a line: ``logger.error``, ``self.logger.error``, or the supervisor's ``_report``."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in _METHODS:
        return False
    if call.func.attr == "_report":
        return isinstance(call.args[0], ast.JoinedStr)
    return ast.unparse(call.func.value).endswith("logger")


def _text(node: ast.expr, scopes: tuple[ast.AST, ...]) -> str:
    """Return the text of a message: a literal, a name that is assigned one, or the first argument of a call."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return _FORMAT.sub(lambda place: "%" if place[0] == "%%" else VALUE, node.value).replace("\n", " ")
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else VALUE for part in node.values)
    if isinstance(node, ast.Call) and node.args:
        return _text(node.args[0], scopes)
    if isinstance(node, ast.Name):
        for scope in scopes:
            for one in ast.walk(scope):
                if isinstance(one, ast.Assign) and [ast.unparse(target) for target in one.targets] == [node.id]:
                    return _text(one.value, scopes)
    raise ValueError(f"line {node.lineno}: the text of a log line has to be a literal or the name of one")


MEANINGS = {
    "Redis lost data: … entries of the log after …, which it had acknowledged. Each stream gets a gap (rolled_back); "
    "`stream-server repair` mends timelines and counters":
        "Redis came back with older data, such as after a failover. Run `repair`; see delivery.md.",
    "the log lost …, which this process wrote and did not receive":
        "Redis no longer has a write that it acknowledged. Clients get a `gap`.",
    "writing to a client failed": "A fault of the server: one stream ended. Report it, with the trace.",
    "stream task failed": "A fault of the server: one stream ended. Report it, with the trace.",
    "the embedded Redis ended by itself with code …":
        "The server stops. The last lines of `redis.log` stand in the message; often memory or disk was missing.",
    "the server stops because a task failed":
        "A fault of the server, which ends with code 1. Report it, with the trace.",
    "the event loop stands still for … s, so the process ends, at …":
        "The process was blocked by its own work. The message has the calls, in which a filter of a plug-in may stand.",
    "no status leaves because of its age: …":
        "The archive of old statuses cannot be written. It is tried again in an hour.",
    "job … failed too often and is parked; `stream-server repair` tries it again":
        "A timeline is not complete. Look for the lines about its failed passes.",
    "the probe of a Redis node failed": "A fault of the server. Report it, with the trace.",
    "…; writes are refused, and this server is not ready":
        "Redis refuses writes, or lacks the replicas of `--write-replicas`.",
    "a request was not answered in … s":
        "The connection was closed. Redis or a filter is too slow, or a fault of the server.",
    "a request could not be answered": "A fault of the server. Report it, with the trace.",
    "unhandled error outside a request handler": "A fault of the server. Report it, with the trace.",
    "unhandled error in a request handler":
        "A fault of the server: the client got 500 `internal` with this `request_id`. Report it, with the trace.",
    "a stream failed at its start":
        "A fault of the server: the connection was dropped, and its client comes back. Report it, with the trace.",
    "a stream waited for something without a slot: see `Opening.hold_slot`":
        "A fault of the server, which answers all the same. Report it.",
    "unhandled error in an operation of a WebSocket": "A fault of the server: the client got `internal`. Report it.",
    "nothing was reloaded: …": "The settings file is invalid. The server goes on with the old settings.",
    "a demo post failed: …": "Only with `--demo`.",
    "no subscription to Redis yet: …":
        "The server starts, and Redis does not answer. It is not ready, and tries again.",
    "subscription to Redis lost: …": "The server is not ready, streams wait, and it connects again.",
    "a webhook failed because of a fault of the server": "It is tried again. Report it, with the trace.",
    "a webhook of user … does not reach …: …":
        "The name of its endpoint is unknown, its address is not allowed, or there is no connection. The user is not "
        "told which of the first two it is.",
    "the webhook of subscription … of user … is …: …":
        "Its endpoint answers 410, or has failed for three days. It gets nothing until the user puts it again.",
    "filter disabled on one stream: …": "A filter raised. The client got the warning `filter_disabled`.",
    "saved rule … cannot be parsed and matches nothing: …": "A newer or older version of the server has saved it.",
    "the other workers cannot ask this one: …":
        "`/metrics` of other workers lacks this one: its socket could not be made.",
    "the process stood still for … s and used … s of processor time: it was …":
        "Streams waited for so long. It was the work of the process, or a pause of the machine or the container.",
    "… lines were dropped, because nothing read them": "The reader of the log was too slow.",
    "commands cannot find this server by its data folder, which cannot be used: …":
        "The server runs without it. Commands need `--redis` and the key.",
    "… does not stop: killing it": "A worker had too little time to say goodbye to its streams.",
    "… ended with code …; no worker could start: giving up": "The lines before say why.",
    "… ended with code …; restarting it in … s":
        "A worker has ended. Minus the number of a signal, such as -9: it was killed.",
    "… sent no heartbeat for … s: killing it": "A worker was blocked. Clients come back to the others.",
    "the clocks of Redis and this machine differ by … s: run NTP on both":
        "Times of tokens and events are wrong by so much.",
    "the last tokens of several users, all with valid signatures, have expired or are from the future: "
    "compare the clock "
    "of this machine with that of the issuer": "A clock is wrong, so the users are refused.",
    "key set refresh failed, keeping the current keys: …":
        "The address of `--jwt-jwks-url` does not answer, or not with keys.",
    "repaired … …: …": "The hourly check has found and mended a counter, a timeline or remains of deleted data.",
    "trimming the log failed: …": "The log grows until it works again.",
    "a pass of job … failed (…: …)": "It is tried again. While Redis is away the level is debug.",
    "… is not read from: …":
        "A replica of `--redis-read` is away, or of another primary. Pages come from the others and the primary.",
    "… is read from again": "This replica helps again.",
    "the Redis node …:… answers again": "Requests for its keys work again.",
    "the Redis node …:… does not answer; requests for its keys fail": "Of a cluster; timelines or writes get 503.",
    "Redis maxmemory-policy is …: data is lost under memory pressure; set noeviction":
        "Set it in Redis' configuration.",
    "updating timelines failed; a job worker will retry (…: …)":
        "The write is done. While Redis is away the level is debug.",
    "Redis takes writes again, and this server is ready": "The end of the error above.",
    "Redis uses … % of its memory; writes are …":
        "At 90 % writes are refused with 503, except those that free memory.",
    "cannot render log entry … in …: …": "A stream of Twitter's dialect lacks this entry.",
    "a filter raised …": "A filter of a plug-in failed on what a client has sent. The client got an error.",
    "all … slots are taken: new connections are refused with 503":
        "Raise `--connections-max`, or start another server.",
    "reloaded ……": "What SIGHUP has changed, and which settings need a restart.",
    "subscription to Redis moved: …": "To a node that is nearer, or the new primary. Nothing is missed.",
    "subscribed to Redis again after … s": "The end of the loss above. Streams catch up.",
    "commands without --data-dir cannot find this server: …": "The folder for temporary files cannot be used.",
    "a list of streams was not answered: …": "Redis was away; the list is incomplete.",
    "open streams are recorded later: …": "Redis is away.",
    "the lease of the streams is renewed later: …": "Redis is away.",
    "tokens of streams are checked later: …": "Redis is away.",
    "trimmed … entries; the log covers … s": "At each trimming of the log.",
    "trimming is postponed, Redis is unavailable: …": "Redis is away.",
    "job workers wait for Redis: …": "Redis is away.",
}  # fmt: skip
"""What each line means, and what to do."""


def rows() -> list[tuple[str, str, str, str]]:
    """Return the rows of the table: level, logger, message, meaning. Raises KeyError for a line without a meaning."""
    return [(one.level, f"`{one.logger}`", f"`` {one.message} ``", MEANINGS[one.message]) for one in log_lines()]
