"""The results of a replay: counts of lines, and the exit code."""

from dataclasses import dataclass

from rich.table import Table

from stream_server.commands.exit_codes import FAILED, INTERRUPTED, OK, UNREACHABLE


@dataclass(slots=True)
class ReplaySummary:
    """Counts of lines, and how the replay ended."""

    total: int = 0
    posted: int = 0
    repeated: int = 0
    unreadable: int = 0
    refused: int = 0
    seconds: float = 0.0
    interrupted: bool = False
    server_lost: str | None = None

    @property
    def exit_code(self) -> int:
        """The exit code; 0 only if every line was posted."""
        if self.server_lost is not None:
            return UNREACHABLE
        if self.interrupted:
            return INTERRUPTED
        return FAILED if self.posted < self.total else OK

    def table(self) -> Table:
        """Return the counts as a table for a person."""
        table = Table(show_header=False, box=None, title=f"replay{' (interrupted)' if self.interrupted else ''}")
        rate = self.posted / self.seconds if self.seconds else 0.0
        rows = {
            "lines": f"{self.total:,}",
            "posted": f"{self.posted:,}  ({rate:,.0f} a second, {self.seconds:,.1f} s)",
            "repeated requests": f"{self.repeated:,}",
            "unreadable lines": f"{self.unreadable:,}",
            "refused by the server": f"{self.refused:,}",
        }
        for name, value in rows.items():
            table.add_row(name, value)
        return table
