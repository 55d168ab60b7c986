"""`rules explain`: the printed reasons and the exit codes."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import invoke


def explain(*arguments: str | Path) -> tuple[int, str, str]:
    """Return the exit code, standard output and standard error."""
    outcome = invoke("rules", "explain", *arguments)
    return outcome.code, outcome.out, outcome.err


def status_file(folder: Path, **members: Any) -> Path:
    file = folder / "status.json"
    file.write_text(json.dumps(members), encoding="utf-8")
    return file


def test_each_part_has_a_line_with_its_reason() -> None:
    code, out, err = explain("tea OR (milk from:ada)", "--text", "a glass of milk")
    lines = out.splitlines()
    assert (code, err) == (1, "")
    assert [line.partition(": ")[0] for line in lines] == [
        "✗ tea OR milk from:ada", "  ✗ tea", "  ✗ milk from:ada", "    ✓ milk", "    ✗ from:ada",
    ]  # fmt: skip
    assert all(line.partition(": ")[2] for line in lines)


def test_a_match_shows_its_indices_in_code_points() -> None:
    code, out, _ = explain("tea", "--text", "茶 is tea")
    assert code == 0
    assert out.rstrip().endswith("[5, 8]")


@pytest.mark.parametrize(
    ("rule", "code", "line", "caret"),
    [
        ("tea (milk", 2, "tea (milk", 9),
        ("tea \u200f\ufe0f(", 2, "tea \u200f\ufe0f(", 5),
        ("茶茶 from:", 2, "茶茶 from:", 10),
        ("tea )", 2, "tea )", 4),
    ],
)
def test_a_bad_rule_has_a_caret_under_its_column(rule: str, code: int, line: str, caret: int) -> None:
    ended, out, err = explain(rule, "--text", "x")
    shown = err.splitlines()
    assert (ended, out) == (code, "")
    assert "expected" in shown[0]
    assert shown[-2:] == [f"  {line}", "  " + " " * caret + "^"]


def test_control_characters_are_escaped() -> None:
    code, out, err = explain("tea \x1b[2J(", "--text", "x")
    assert (code, out, "\x1b" in err) == (2, "", False)


@pytest.mark.parametrize(
    ("rule", "members"),
    [
        ("tea from:ada", {"message": "tea", "author": {"login": "ada"}}),
        ("tea followers_count:5..9", {"message": "tea", "author": {"followers": 7}}),
        ("meta.room:7 meta.size:2..", {"message": "tea", "meta": {"room": "7", "size": 3}}),
        ("tea lang:de", {"message": "tea", "lang": "de"}),
        ("tea is:reply", {"message": "tea", "in_reply_to": "12"}),
        ("tea is:quote", {"id": "3", "uid": "1", "message": "see", "original": {
            "id": "1", "uid": "2", "message": "tea"}}),
        ("tea has:media", {"message": "tea", "media": [{"url": "https://a.co/m.png", "type": "image"}]}),
        ("#tea from:ada", {"id": "9", "uid": "3", "login": "ada", "message": "#tea", "entities": {
            "mentions": [], "hashtags": [{"text": "tea", "indices": [0, 4]}], "cashtags": [], "urls": []}}),
    ],
    ids=range(8),
)  # fmt: skip
def test_a_status_is_read_from_a_file(tmp_path: Path, rule: str, members: dict[str, Any]) -> None:
    assert explain(rule, "--status", status_file(tmp_path, **members))[0] == 0
    assert explain(rule, "--text", "tea")[0] == 1


def test_a_made_up_status_belongs_to_no_thread(tmp_path: Path) -> None:
    reply = {"message": "yes", "in_reply_to": "12"}
    for arguments in (("--text", "tea"), ("--status", status_file(tmp_path, **reply))):
        assert "it belongs to no thread" in explain("conversation_id:0", *arguments)[1]
    posted = status_file(tmp_path, **reply, id="13", uid="3", conversation="11")
    assert explain("conversation_id:11", "--status", posted)[0] == 0


def test_options_replace_members_of_the_file(tmp_path: Path) -> None:
    file = status_file(tmp_path, message="tea", lang="en")
    assert explain("milk lang:de", "--status", file, "--text", "milk", "--lang", "de")[0] == 0
    assert explain("tea", "--status", file, "--text", "milk")[0] == 1


def test_the_language_is_detected_from_the_text() -> None:
    assert explain("Zug lang:de", "--text", "Heute war der Zug zum Flughafen schon wieder zu spät")[0] == 0


@pytest.mark.parametrize("text", ["", "[]", "{", '{"id": "x"}', '{"id": "1", "location": {}}'])
def test_a_file_without_a_status_is_one_sentence(tmp_path: Path, text: str) -> None:
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
def test_an_invalid_member_is_refused_by_name(tmp_path: Path, members: dict[str, Any], member: str) -> None:
    code, out, err = explain("tea", "--status", status_file(tmp_path, **members))
    assert (code, out) == (2, "")
    assert f"--status: {member}: " in err


@pytest.mark.parametrize(("option", "value"), [("--text", "te\x01a"), ("--lang", "xx_")])
def test_invalid_options_are_refused_by_name(tmp_path: Path, option: str, value: str) -> None:
    file = status_file(tmp_path, id="1", message="tea")
    code, out, err = explain("tea", "--status", file, option, value)
    assert (code, out) == (2, "")
    assert f"{option}: " in err


@pytest.mark.parametrize("depth", [100, *range(970, 1000), 20_000])
def test_deeply_nested_json_is_one_sentence(tmp_path: Path, depth: int) -> None:
    file = tmp_path / "status.json"
    meta = '{"a":' * depth + "1" + "}" * depth
    file.write_text('{"id": "1", "message": "tea", "meta":' + meta + "}", encoding="utf-8")
    code, out, err = explain("tea", "--status", file)
    assert (code, "nested too deeply" in err, "✓" in out) in {(0, False, True), (2, True, False)}
    assert (code == 0) or depth > 100


def test_a_text_or_a_file_is_required() -> None:
    code, _, err = explain("tea")
    assert code == 2
    assert "--text" in err


def test_a_rule_may_begin_with_a_minus_after_two_dashes() -> None:
    assert explain("--text", "tea", "--", "-milk tea")[0] == 0


def test_options_that_are_not_utf_8_are_one_sentence() -> None:
    for arguments in (("--text", "tea \udcff"), ("--text", "tea", "--lang", "\udcff")):
        code, out, err = explain("tea", *arguments)
        assert (code, out) == (2, "")
        assert "UTF-8" in err
