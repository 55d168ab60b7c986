"""Languages are told from a sentence, and not from what is too short or no language at all."""

import json

import pytest

from filters.entities import extract_entities
from stream_server.app import running_application
from stream_server.events import language
from stream_server.events.language import detect_language
from stream_server.web.http import app_keys
from tests.filters.data import FOLDER
from tests.stream_server import tokens
from tests.stream_server.store.people import People

SENTENCES = {
    "ar": "تأخر القطار المتجه إلى المطار مرة أخرى هذا الصباح",
    "cs": "Vlak na letiště měl dnes ráno zase zpoždění",
    "de": "Heute war der Zug zum Flughafen schon wieder zu spät",
    "el": "Το τρένο για το αεροδρόμιο άργησε πάλι σήμερα το πρωί",  # noqa: RUF001 - Greek has letters that look Latin
    "en": "The train to the airport was late again this morning",
    "es": "El tren al aeropuerto llegó tarde otra vez esta mañana",
    "fi": "Juna lentokentälle oli taas myöhässä tänä aamuna",
    "fr": "Le train pour l'aéroport était encore en retard ce matin",
    "he": "הרכבת לשדה התעופה איחרה שוב הבוקר",
    "hi": "हवाई अड्डे जाने वाली ट्रेन आज सुबह फिर देर से आई",
    "it": "Il treno per l'aeroporto era di nuovo in ritardo stamattina",
    "ja": "今朝も空港行きの電車が遅れました",
    "ko": "오늘 아침 공항으로 가는 기차가 또 늦었어요",
    "nl": "De trein naar het vliegveld was vanochtend weer te laat",
    "pl": "Pociąg na lotnisko znowu się dziś rano spóźnił",
    "pt": "O trem para o aeroporto atrasou de novo esta manhã",
    "ru": "Поезд в аэропорт сегодня утром снова опоздал",
    "sv": "Tåget till flygplatsen var försenat igen i morse",
    "th": "รถไฟไปสนามบินมาสายอีกแล้วเช้านี้",
    "tr": "Havaalanına giden tren bu sabah yine gecikti",  # noqa: RUF001 - and so has Turkish
    "uk": "Потяг до аеропорту сьогодні вранці знову запізнився",
    "vi": "Chuyến tàu ra sân bay sáng nay lại trễ",
    "zh": "今天早上去机场的火车又晚点了",
}

SHORT = {
    "de": "Guten Morgen zusammen",
    "en": "see you tomorrow",
    "fr": "C'est pas possible",
    "nl": "Goedemorgen allemaal",
    "pt": "Bom dia a todos",
    "ru": "Доброе утро",
}

NO_LANGUAGE = [
    "", " ", "ok", "lol", "hahaha", "RT", "thanks", "asdf qwer zxcv", "123 456", "!!!", "😀😀", "\ufffe\ufffe",
    "x" * 280, "@jack", "#tea #coffee", "$TWTR", "https://example.org/the-train-to-the-airport-was-late",
    "@jack @jill #thetraintotheairport https://example.org/a",
]  # fmt: skip

pytestmark = pytest.mark.skipif(language.library() is None, reason="there is no CLD2 for this machine")


def _told(text: str) -> str:
    return detect_language(text, extract_entities(text))


def _data(name: str) -> str:
    path = FOLDER.parent / name
    if not path.exists():
        pytest.skip(f"the real posts are not at {path}")
    return path.read_text("utf-8")


@pytest.mark.parametrize(("lang", "sentence"), [*SENTENCES.items(), *SHORT.items()])
def test_a_sentence_tells_its_language(lang: str, sentence: str) -> None:
    """Also behind what is addressed, tagged or linked, whatever language that looks like."""
    assert _told(sentence) == lang
    assert _told(f"@jack {sentence}\n#morning https://example.org/the/train/was/late $TWTR") == lang


@pytest.mark.parametrize("text", NO_LANGUAGE)
def test_what_tells_nothing_is_undetermined(text: str) -> None:
    """A single word, a laugh, signs, and what is no text of the author's own."""
    assert _told(text) == "und"


def test_characters_that_are_no_text_are_no_failure() -> None:
    """CLD2 refuses them; a post may have them."""
    assert _told("\ufffe The train to the airport was late again this morning") == "und"


@pytest.mark.parametrize("text", ["Non ci posso credere", "Congratulations everybody congratulations"])
def test_what_nobody_speaks_is_never_told(text: str) -> None:
    """A short Italian text is Latin to it."""
    assert _told(text) in {"it", "en", "und"}


def test_where_it_is_not_installed_nothing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server runs without it."""
    monkeypatch.setattr(language, "library", lambda: None)
    assert _told(SENTENCES["en"]) == "und"


@pytest.mark.parametrize(("setting", "lang"), [("on", "de"), ("off", "und")])
async def test_a_setting_switches_it_off(redis_url: str, setting: str, lang: str) -> None:
    """What its author says is kept either way."""
    config = tokens.config(redis=redis_url, detect_language=setting, job_workers=0, repair_seconds=0.0)
    async with running_application(config) as app:
        people = People(app[app_keys.STORE])
        ann = await people.user("ann")
        assert (await people.status(ann, SENTENCES["de"]))["lang"] == lang
        assert (await people.status(ann, SENTENCES["de"], lang="fr"))["lang"] == "fr"


def test_real_posts() -> None:
    """Tweets to airlines are English, but for a handful that nobody can tell; the Japanese ones are Japanese."""
    told = [_told(json.loads(line)["message"]) for line in _data("tweets.jsonl").splitlines()]
    assert told.count("en") > 0.97 * len(told)
    assert len(told) - told.count("en") - told.count("und") < 0.001 * len(told)
    told = [_told(one["text"]) for one in json.loads(_data("twitter.json"))["statuses"]]
    assert told.count("ja") > 0.9 * len(told)
