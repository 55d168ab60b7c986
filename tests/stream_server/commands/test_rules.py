"""``rules explain``: why a rule matches, in lines that a person reads, and by its exit code."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import invoke


def explain(*arguments: str | Path) -> tuple[int, str, str]:
    """The exit code, and what was printed."""
    outcome = invoke("rules", "explain", *arguments)
    return outcome.code, outcome.out, outcome.err


def status(folder: Path, **members: Any) -> Path:
    """A file with a status."""
    file = folder / "status.json"
    file.write_text(json.dumps(members), encoding="utf-8")
    return file


def test_each_part_has_a_line_with_its_reason() -> None:
    """Parts stand under what they are parts of, each ticked or crossed."""
    code, out, err = explain("tea OR (milk from:ada)", "--text", "a glass of milk")
    lines = out.splitlines()
    assert (code, err) == (1, "")
    assert [line.partition(": ")[0] for line in lines] == [
        "✗ tea OR milk from:ada", "  ✗ tea", "  ✗ milk from:ada", "    ✓ milk", "    ✗ from:ada",
    ]  # fmt: skip
    assert all(line.partition(": ")[2] for line in lines)


def test_where_it_stands_in_the_message_is_told() -> None:
    """In code points."""
    code, out, _ = explain("tea", "--text", "茶 is tea")
    assert code == 0
    assert out.rstrip().endswith("[5, 8]")


@pytest.mark.parametrize(
    ("rule", "code", "line", "caret"),
    [("tea (milk", 2, "tea (milk", 9), ("茶茶 from:", 2, "茶茶 from:", 10), ("tea )", 2, "tea )", 4)],
)
def test_a_bad_rule_has_a_caret_under_its_column(rule: str, code: int, line: str, caret: int) -> None:
    """Also behind characters that are two cells wide."""
    ended, out, err = explain(rule, "--text", "x")
    shown = err.splitlines()
    assert (ended, out) == (code, "")
    assert "expected" in shown[0]
    assert shown[-2:] == [f"  {line}", "  " + " " * caret + "^"]


def test_what_a_terminal_would_obey_is_shown() -> None:
    """A rule and its reasons may come from anywhere."""
    code, out, err = explain("tea \x1b[2J(", "--text", "x")
    assert (code, out, "\x1b" in err) == (2, "", False)


@pytest.mark.parametrize(
    ("rule", "members"),
    [
        ("tea from:ada", {"message": "tea", "author": {"login": "ada"}}),
        ("tea followers_count:5..9", {"message": "tea", "author": {"followers": 7}}),
        ("tea lang:de", {"message": "tea", "lang": "de"}),
        ("tea is:reply", {"message": "tea", "in_reply_to": "12"}),
        ("tea is:quote", {"id": "3", "uid": "1", "message": "see", "original": {
            "id": "1", "uid": "2", "message": "tea"}}),
        ("tea has:media", {"message": "tea", "media": [{"url": "https://a.co/m.png", "type": "image"}]}),
        ("#tea from:ada", {"id": "9", "uid": "3", "login": "ada", "message": "#tea", "entities": {
            "mentions": [], "hashtags": [{"text": "tea", "indices": [0, 4]}], "cashtags": [], "urls": []}}),
    ],
    ids=range(7),
)  # fmt: skip
def test_a_status_comes_from_a_file(tmp_path: Path, rule: str, members: dict[str, Any]) -> None:
    """As the API takes one, or gives one, with an author beside it."""
    assert explain(rule, "--status", status(tmp_path, **members))[0] == 0
    assert explain(rule, "--text", "tea")[0] == 1


def test_what_is_made_up_is_in_no_thread(tmp_path: Path) -> None:
    """Without a server nobody knows the thread of what it answers; a status as the API gives it says its own."""
    reply = {"message": "yes", "in_reply_to": "12"}
    for arguments in (("--text", "tea"), ("--status", status(tmp_path, **reply))):
        assert "it belongs to no thread" in explain("conversation_id:0", *arguments)[1]
    posted = status(tmp_path, **reply, id="13", uid="3", conversation="11")
    assert explain("conversation_id:11", "--status", posted)[0] == 0


def test_what_is_said_beside_the_file_counts(tmp_path: Path) -> None:
    """The words and the language of the options replace those of the file."""
    file = status(tmp_path, message="tea", lang="en")
    assert explain("milk lang:de", "--status", file, "--text", "milk", "--lang", "de")[0] == 0
    assert explain("tea", "--status", file, "--text", "milk")[0] == 1


def test_the_language_is_told_by_the_words() -> None:
    """As it is for a post."""
    assert explain("Zug lang:de", "--text", "Heute war der Zug zum Flughafen schon wieder zu spät")[0] == 0


@pytest.mark.parametrize("text", ["", "[]", "{", '{"id": "x"}', '{"id": "1", "location": {}}'])
def test_a_file_that_holds_no_status_is_a_sentence(tmp_path: Path, text: str) -> None:
    """No traceback, and the code of wrong usage."""
    file = tmp_path / "status.json"
    file.write_text(text, encoding="utf-8")
    code, out, err = explain("tea", "--status", file)
    assert (code, out) == (2, "")
    assert "--status" in err


@pytest.mark.parametrize(
    ("members", "member"),
    [
        ({"message": 5}, "message"),
        ({"author": 5}, "author"),
        ({"author": {"login": "a b"}}, "author.login"),
        ({"location": {"lon": 1000, "lat": 5}}, "location.lon"),
        ({"mesage": "tea"}, "mesage"),
        ({"message": "tea", "lang": "xx_"}, "lang"),
        ({"id": "1", "message": 5}, "message"),
        ({"id": "1", "author": 5}, "author"),
        ({"id": "1", "author": {"followers": "many"}}, "author.followers"),
    ],
    ids=str,
)
def test_what_the_api_refuses_is_refused_by_name(tmp_path: Path, members: dict[str, Any], member: str) -> None:
    """Whether it is a status that the API would take, or one that it might have given."""
    code, out, err = explain("tea", "--status", status(tmp_path, **members))
    assert (code, out) == (2, "")
    assert f"--status: {member}: " in err


@pytest.mark.parametrize(("option", "value"), [("--text", "te\x01a"), ("--lang", "xx_")])
def test_the_options_are_held_to_the_same(tmp_path: Path, option: str, value: str) -> None:
    """Also where they replace what is in a file that the API gave."""
    file = status(tmp_path, id="1", message="tea")
    code, out, err = explain("tea", "--status", file, option, value)
    assert (code, out) == (2, "")
    assert f"{option}: " in err


@pytest.mark.parametrize("depth", [100, *range(970, 1000), 20_000])
def test_a_deep_file_is_a_sentence(tmp_path: Path, depth: int) -> None:
    """However far it is read: what is not too deep to be read may be too deep to be written."""
    file = tmp_path / "status.json"
    file.write_text(
        '{"id": "1", "message": "tea", "meta":' + '{"a":' * depth + "1" + "}" * depth + "}", encoding="utf-8"
    )
    code, out, err = explain("tea", "--status", file)
    assert (code, "nested too deeply" in err, "✓" in out) in {(0, False, True), (2, True, False)}
    assert (code == 0) or depth > 100


def test_there_must_be_something_to_try_it_on() -> None:
    """Neither words nor a file is wrong usage."""
    code, _, err = explain("tea")
    assert code == 2
    assert "--text" in err


def test_a_rule_that_begins_with_a_minus() -> None:
    """It stands behind two of them."""
    assert explain("--text", "tea", "--", "-milk tea")[0] == 0


def test_words_that_are_no_text_are_a_sentence() -> None:
    """A shell hands over any bytes; those that are no UTF-8 arrive as halves of pairs."""
    for arguments in (("--text", "tea \udcff"), ("--text", "tea", "--lang", "\udcff")):
        code, out, err = explain("tea", *arguments)
        assert (code, out) == (2, "")
        assert "UTF-8" in err
