"""A random log for the tests of lakes, which knows what is deleted and replaced in it; and a pass that erases this."""

import json
import random
from pathlib import Path
from typing import Any

from stream_server.commands.lake_erasure import Erased, Eraser
from stream_server.commands.lake_files import open_lake
from stream_server.events.position import EPOCH_MS
from tests.stream_server.commands.lakes import NOON_MS, PARAMETERS, Message, entry

DAY = 86_400


class History:
    """A log of random acts. Each status and comment has a word of its own, by which a test finds it wherever it is.

    ``gone`` are the words of those that are deleted, and the names of deleted users. ``replaced`` are the words of
    statuses before their edits, and ``edited`` has the last versions of these statuses.
    """

    def __init__(self, seed: int, acts: int) -> None:
        self.chance, self.log, self.seconds = random.Random(seed), list[Message](), 0.0
        self.statuses: dict[str, Message] = {}
        self.comments: dict[str, Message] = {}
        self.gone: set[str] = set()
        self.replaced: set[str] = set()
        self.edited: dict[str, Message] = {}
        for _ in range(acts):
            self.seconds += self.chance.expovariate(1 / 40)
            self.act()

    def act(self) -> None:
        often = [self.post] * 5 + [self.repeat] * 2 + [self.like, self.comment, self.follow]
        seldom = [self.leave] * (self.chance.random() < 0.2)
        self.chance.choice([*often, self.edit, self.delete, self.uncomment, *seldom])()

    def add(self, kind: str, **members: Any) -> None:
        self.log.append(entry(len(self.log) + 1, self.seconds, kind, **members))

    def new_id(self) -> str:
        return str((NOON_MS + round(self.seconds * 1000) - EPOCH_MS) * 4096 + len(self.log) % 4096)

    def user(self) -> Message:
        uid = self.chance.choice([one for one in ("7", "8", "9", "10", "11") if f"name{one}x" not in self.gone])
        return {"id": uid, "login": f"name{uid}x"}

    def status(self, words: str, original: Message | None = None) -> Message:
        author = self.user()
        made = {"id": self.new_id(), "uid": author["id"], "login": author["login"], "message": words}
        made["place"] = {"name": f"word{len(self.log)}x"}  # a repost has no words of its own
        self.statuses[made["id"]] = made
        return made if original is None else made | {"original": original}

    def post(self) -> None:
        self.add("post", status=self.status(f"word{len(self.log)}x"))

    def repeat(self) -> None:
        if self.statuses:
            words = self.chance.choice(["", f"word{len(self.log)}x"])
            self.add("post", status=self.status(words, self.chance.choice(list(self.statuses.values()))))

    def edit(self) -> None:
        if self.statuses:
            before = self.statuses[self.chance.choice(list(self.statuses))]
            self.replaced.add(before["place"]["name"])
            words = {"message": self.chance.choice(["", "new"]), "place": {"name": f"word{len(self.log)}x"}}
            status = before | words | {"edits": before.get("edits", 0) + 1}
            self.statuses[status["id"]] = self.edited[status["id"]] = status
            self.add("edit", status=status)

    def like(self) -> None:
        if self.statuses:
            kind = self.chance.choice(["like", "unlike"])
            self.add(kind, source=self.user(), status=self.chance.choice(list(self.statuses.values())))

    def comment(self) -> None:
        if self.statuses:
            status, author = self.chance.choice(list(self.statuses.values())), self.user()
            made = {
                "id": self.new_id(), "uid": author["id"], "login": author["login"], "status": status["id"],
                "message": f"word{len(self.log)}x",
            }  # fmt: skip
            self.comments[made["id"]] = made
            self.add("comment", comment=made, status=status)

    def follow(self) -> None:
        self.add(self.chance.choice(["follow", "block"]), source=self.user(), target=self.user())

    def delete(self) -> None:
        if self.statuses:
            self.delete_status(self.statuses[self.chance.choice(list(self.statuses))])

    def delete_status(self, status: Message) -> None:
        del self.statuses[status["id"]]
        self.gone.add(status["place"]["name"])
        for comment in [one for one in self.comments.values() if one["status"] == status["id"]]:
            self.gone.add(self.comments.pop(comment["id"])["message"])
        self.add("delete", status={"id": status["id"], "uid": status["uid"]})

    def uncomment(self) -> None:
        if self.comments:
            self.delete_comment(self.chance.choice(list(self.comments.values())))

    def delete_comment(self, comment: Message) -> None:
        self.gone.add(self.comments.pop(comment["id"])["message"])
        ids = {"id": comment["id"], "uid": comment["uid"]}
        self.add("uncomment", comment=ids, status=self.statuses[comment["status"]])

    def leave(self) -> None:
        """Delete an account, and then all that it wrote."""
        if sum(name.startswith("name") for name in self.gone) < 3:
            user = self.user()
            self.gone.add(user["login"])
            self.add("user_delete", user={"id": user["id"], "deleted": True})
            for status in [one for one in self.statuses.values() if one["uid"] == user["id"]]:
                self.delete_status(status)
            for comment in [one for one in self.comments.values() if one["uid"] == user["id"]]:
                self.delete_comment(comment)

    def left(self) -> list[Message]:
        """Return the messages that must be left, judged by words alone."""
        found = []
        for message in map(self.with_last_versions, self.log):
            status = message.get("status", {})
            shown = message
            if self.shows_gone(status.get("original")):
                shown = message | {"status": status | {"original": None}}
            if message["kind"] == "uncomment" and self.shows_gone(status):
                shown = message | {"status": {"id": status["id"], "uid": status["uid"], "deleted": True}}
            if message["kind"] == "edit" and self.shows_gone(message):
                ids = {"id": status["id"], "uid": status["uid"]}
                shown = {name: message[name] for name in ("kind", "cursor", "at")} | {"left": ids}
            if not self.shows_gone(shown):
                found.append(shown)
        return found

    def with_last_versions(self, message: Message) -> Message:
        """Return a message with the last versions of the statuses that it shows."""
        status: Message = message.get("status", {})
        if "message" not in status:
            return message
        shown: Message = self.edited.get(status["id"], status)
        if "original" in status:
            shown = shown | {"original": self.edited.get(status["original"]["id"], status["original"])}
        return message | {"status": shown}

    def shows_gone(self, value: object) -> bool:
        text = json.dumps(value)
        return any(f'"{word}"' in text for word in self.gone)


async def erase(folder: Path, after: int = 0, now: float = NOON_MS / 1000 + 365 * DAY) -> list[Erased]:
    """Erase what is due, as a process that starts would."""
    told: list[Erased] = []
    with open_lake(folder, PARAMETERS) as lake:
        await Eraser(lake, after, told.append, lambda: now).run_due()
    return told
