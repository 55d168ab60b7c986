"""Language detection."""

import json
import random

import pytest

from filters.entities import extract_entities
from stream_server.app import running_application
from stream_server.events import language
from stream_server.events.language import detect_language
from stream_server.web.http import app_keys
from tests.public_data import public_file
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
    "ru": "Доброе утро всем",
}

NO_LANGUAGE = [
    "", " ", "ok", "lol", "hahaha", "RT", "thanks", "asdf qwer zxcv", "123 456", "!!!", "😀😀", "\ufffe\ufffe",
    "x" * 280, "@jack", "#tea #coffee", "$TWTR", "https://example.org/the-train-to-the-airport-was-late",
    "@jack @jill #thetraintotheairport https://example.org/a",
]  # fmt: skip


def _detect(text: str) -> str:
    return detect_language(text, extract_entities(text))


@pytest.mark.parametrize(("lang", "sentence"), [*SENTENCES.items(), *SHORT.items()])
def test_a_sentence_has_its_language(lang: str, sentence: str) -> None:
    """Also behind mentions, tags and links, whatever language they look like."""
    assert _detect(sentence) == lang
    assert _detect(f"@jack {sentence}\n#morning https://example.org/the/train/was/late $TWTR") == lang


@pytest.mark.parametrize("text", NO_LANGUAGE)
def test_short_texts_and_texts_without_words_are_undetermined(text: str) -> None:
    assert _detect(text) == "und"


@pytest.mark.parametrize("character", ["\0", "\n", "\ud800", "\ufffe", "\U0001f600"])
def test_a_character_that_is_no_letter_changes_nothing(character: str) -> None:
    assert _detect(f"{character} The train to the {character} was late again {character} this morning") == "en"


def test_the_words_of_an_ascii_text_are_those_of_any_text() -> None:
    source = random.Random(26)
    for _ in range(3000):
        text = "".join(chr(source.randrange(128)) for _ in range(source.randrange(60))).lower()
        assert language._ASCII_WORD.findall(text) == language._WORD.findall(text), text


def test_only_the_beginning_of_a_long_text_counts() -> None:
    """This bounds the time, whatever the limit of a message."""
    text = f"{SENTENCES['en']}. " * (language.MAX_CHARS // 40)
    assert len(text) > language.MAX_CHARS
    assert _detect(text + f"{SENTENCES['fr']}. " * 1000) == "en"


@pytest.mark.parametrize(("label", "tag"), [("als", "gsw"), ("tl", "fil"), ("la", "und"), ("en", "en")])
def test_a_label_becomes_a_tag(monkeypatch: pytest.MonkeyPatch, label: str, tag: str) -> None:
    class Model:
        def predict(self, text: str, count: int, least: float) -> tuple[tuple[str], list[float]]:
            assert (text, count, least) == ("two words", 1, language.MIN_PROBABILITY)
            return (f"__label__{label}",), [0.9]

    monkeypatch.setattr(language, "_model", Model)
    assert _detect("Two words!") == tag


@pytest.mark.parametrize("text", ["Non ci posso credere", "Congratulations everybody congratulations"])
def test_latin_is_never_detected(text: str) -> None:
    assert _detect(text) in {"it", "en", "und"}


@pytest.mark.parametrize(("setting", "lang"), [("on", "de"), ("off", "und")])
async def test_a_setting_disables_detection_of_missing_languages_only(redis_url: str, setting: str, lang: str) -> None:
    config = tokens.config(redis=redis_url, detect_language=setting, job_workers=0)
    async with running_application(config) as app:
        people = People(app[app_keys.STORE])
        ann = await people.user("ann")
        assert (await people.status(ann, SENTENCES["de"]))["lang"] == lang
        assert (await people.status(ann, SENTENCES["de"], lang="fr"))["lang"] == "fr"


def test_the_languages_of_real_posts() -> None:
    tweets = public_file("tweets.jsonl").read_text("utf-8").splitlines()
    detected = [_detect(json.loads(line)["message"]) for line in tweets]
    assert detected.count("en") > 0.95 * len(detected)
    assert len(detected) - detected.count("en") - detected.count("und") < 0.003 * len(detected)
    detected = [_detect(one["text"]) for one in json.loads(public_file("twitter.json").read_text("utf-8"))["statuses"]]
    assert detected.count("ja") > 0.9 * len(detected)
