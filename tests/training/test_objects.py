"""Objects as text, the sheets and records behind them, and how they are weighed and graded."""

import json
import re
from random import Random

import pytest
from tokenizers import Tokenizer

from lmc import builtin_model
from training import characters, cities, objects, packing, records
from training.document import Document, Kind, Split
from training.grading import spans
from training.tasks import FAMILIES, fields, structured

WORD = r"[\w\d\s]{1,16}"
# The shapes of SGLang's benchmark json_jump_forward.
CHARACTER = re.compile(
    rf'\{{\n    "name": "{WORD}",\n    "house": "(Gryffindor|Slytherin|Ravenclaw|Hufflepuff)",\n'
    r'    "blood status": "(Pure-blood|Half-blood|Muggle-born)",\n'
    r'    "occupation": "(student|teacher|auror|ministry of magic|death eater|order of the phoenix)",\n'
    rf'    "wand": \{{\n        "wood": "{WORD}",\n        "core": "{WORD}",\n'
    r'        "length": [0-9]{1,2}\.[0-9]{0,2}\n    \},\n'
    rf'    "alive": "(Alive|Deceased)",\n    "patronus": "{WORD}",\n    "bogart": "{WORD}"\n\}}',
    re.ASCII,
)
CITY = re.compile(
    rf'\{{\n  "name": "{WORD}",\n  "country": "{WORD}",\n  "latitude": [-+]?[0-9]*\.?[0-9]{{0,2}},\n'
    rf'  "population": [-+]?[0-9]{{1,9}},\n  "top 3 landmarks": \["{WORD}", "{WORD}", "{WORD}"\]\n\}}',
    re.ASCII,
)


@pytest.fixture(scope="module")
def vocabulary() -> Tokenizer:
    tokenizer = Tokenizer.from_file(str(builtin_model.path() / "tokenizer.json"))
    tokenizer.encode_special_tokens = True
    return tokenizer


def test_an_object_is_json_and_its_values_are_found():
    sheet: dict[str, objects.Value] = {"a b": "x, y", "n": -3, "t": True, "list": ["p", "q"], "in": {"z": 1.5}}
    for indent in (None, 2, 4):
        text, ranges = objects.render(sheet, indent)
        assert json.loads(text) == sheet
        assert [text[start:stop] for start, stop in ranges] == ['"x, y"', "-3", "true", '"p"', '"q"', "1.5"]
    assert objects.render(sheet)[0] == json.dumps(sheet, separators=(",", ":"))
    assert objects.render({"a": "é", "b": []})[0] == '{"a":"é","b":[]}'


@pytest.mark.parametrize("split", list(Split))
def test_the_benchmark_accepts_every_sheet(split):
    for seed in range(300):
        assert CHARACTER.fullmatch(objects.render(characters.draw(Random(seed), split).sheet(), 4)[0])
        assert CITY.fullmatch(objects.render(cities.draw(Random(seed), split).sheet(), 2)[0])


@pytest.mark.parametrize("split", list(Split))
def test_texts_state_every_value(split):
    for seed in range(60):
        rng = Random(seed)
        character = characters.draw(rng, split)
        values = (character.house, character.blood, character.occupation, character.wood, character.core)
        values = (*values, str(character.length), character.patronus, character.bogart, character.name)
        for text in (characters.tell(rng, split, character), characters.listing(rng, character)):
            assert all(value in text for value in values)
        city = cities.draw(rng, split)
        page = cities.page(rng, split, city, 600, everything=True)
        assert all(str(value) in page for value in fields._flat(city.fields()).values())
        assert all(landmark in page for landmark in city.landmarks)
        assert 450 < len(page) < 1000


def test_records_are_told_with_their_kinds():
    inner: dict[str, objects.Value] = {"street": "elm", "number": 7}
    record = records.Record(
        "Bea",
        (
            records.Field("paid", False),
            records.Field("tags", ["red", "blue"]),
            records.Field("address", inner),
            records.Field("rank", 12),
        ),
    )
    told = [records.tell(Random(seed), Split.TRAIN, record) for seed in range(30)]
    listed = [records.listing(Random(seed), record) for seed in range(30)]
    assert all("not paid" in text or "false that Bea is paid" in text for text in told)
    assert all(part in text for part in ("red", "blue", "street elm", "number 7", "12") for text in told)
    assert all(part in text for part in ("tags: red, blue", "address street: elm", "rank: 12") for text in listed)
    assert {re.findall(r"paid: (\w+)", text)[0] for text in listed} == {"no", "false"}
    described = {", ".join(records.described(Random(seed), record)) for seed in range(30)}
    assert described == {
        "paid, tags, address (street, number), rank",
        "paid (boolean), tags (list), address (street, number), rank (integer)",
    }


@pytest.mark.parametrize("split", list(Split))
def test_drawn_records_are_told_in_full(split):
    for seed in range(200):
        record = records.draw(Random(seed), split)
        told = records.tell(Random(seed), split, record)
        keys = [one.key for one in record.fields]
        assert len(set(keys)) == len(keys) >= 2
        for one in record.fields:
            values = one.value if isinstance(one.value, list) else [one.value]
            values = [*one.value.values()] if isinstance(one.value, dict) else values
            assert all(isinstance(value, bool) or str(value) in told for value in values)


def test_no_phrasing_is_on_both_sides():
    lists = [*characters._TOLD.values(), *cities._TOLD.values(), cities._FILLERS]
    lists += [records._LINKED, records._LISTS, records._YES, records._NO]
    lists += [structured._SYSTEM, structured._CHARACTER, structured._CITY, structured._ANY]
    lists += [fields._SYSTEM, fields._ORDER, fields._KEYS]
    for phrasings in lists:
        assert phrasings.train
        assert phrasings.held_out
        assert not set(phrasings.train) & set(phrasings.held_out)


def test_only_the_values_of_an_object_count_fully(vocabulary):
    text, ranges = objects.render({"name": "Bea Stone", "age": 31, "tags": ["red"]}, 2)
    document = Document("structured")
    document.text("Text:\n")
    document.object(text, ranges)
    ids, weights = packing.encode(vocabulary, document)
    written = [vocabulary.decode([token]) for token, weight in zip(ids, weights, strict=True) if weight == 1.0]
    assert "".join(written) == '"Bea Stone"31"red"'
    assert weights.count(packing.FRAME_WEIGHT) == len(vocabulary.encode(text).ids) - len(written)
    assert weights[: weights.index(packing.FRAME_WEIGHT)] == [0.0] * len(vocabulary.encode("Text:\n").ids)


def test_every_value_of_an_object_is_graded_with_its_key(vocabulary):
    text, ranges = objects.render({"name": "Bea", "age": 31, "paid": True})
    document = Document("structured")
    document.start_turn("assistant")
    document.object(text, ranges)
    document.end_turn(learned=True)
    ids, found = spans(vocabulary, document)
    graded = [vocabulary.decode(ids[span.start : span.stop], skip_special_tokens=False) for span in found]
    assert graded == ['{"name":"Bea","', 'age":31', ',"paid":true}<|im_end|>']


def test_structured_answers_are_json():
    found = [
        segment.text
        for seed in range(60)
        for segment in FAMILIES["structured"](Random(seed), Split.HELD_OUT, 900).segments
        if segment.kind is Kind.ANSWER and segment.text != "\n"
    ]
    assert all(isinstance(json.loads(text), dict) for text in found)
    assert sum(text.startswith('{\n    "name"') for text in found) > 10
    assert sum(text.startswith('{"') for text in found) > 10


def test_fields_are_in_their_documents_in_every_style():
    seen: set[tuple[str, str]] = set()
    for seed in range(120):
        before = ""
        for segment in FAMILIES["fields"](Random(seed), Split.HELD_OUT, 700).segments:
            if segment.kind is Kind.ANSWER:
                assert segment.text.strip(' ",') in before
                seen.add(
                    (before[-3:].translate(str.maketrans("", "", "abcdefghijklmnopqrstuvwxyz")), segment.text[-2:])
                )
            before += segment.text
    ends = {label for label, _ in seen}
    assert {'": ', '":', ': "', ": ", ":"} <= ends


def test_the_last_value_before_a_brace_has_no_comma():
    document = Document("fields")
    fields._fill_in(document, fields.STYLES[1], {"name": "Bea", "age": 31})
    assert document.full_text() == '{\n  "name": "Bea",\n  "age": 31\n}'
    document = Document("fields")
    fields._fill_in(document, fields.STYLES[3], {"age": 31, "name": "Bea", "city": "Melt"})
    assert document.full_text() == 'age: 31,\nname: "Bea",\ncity: "Melt"'
    assert [segment.text for segment in document.segments if segment.kind is Kind.ANSWER] == ["31,", 'Bea"', 'Melt"']
