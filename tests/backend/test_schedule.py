import random
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmc.backend.schedule import schedule
from lmc.backend.schedule.request_model import Answer, Known
from lmc.backend.schedule.schedule import Room, schedule_batch
from lmc.backend.schedule.schedule_json import dump_schedule, load_schedule
from lmc.cache.batch_order.ranks import InstanceOrder, Layout
from lmc.cache.node import common_prefix_length
from lmc.cache.simulation.simulator import coarse_trial
from lmc.ir.engine.protocol import Engine, EngineInfo
from tests.backend.programs import JUDGE, plan_of
from tests.work import calls_of

TWO_TEXTS = r"""
module @f {
  func @f(%late: !text, %early: !text, %n: !int) {
    %0 = lm.context : !ctx
    %u = py.call str.upper (%early) : !text
    %j = text.concat ["<", %u, ">"] : !text
    %1 = lm.begin %0, user : !ctx
    %2 = lm.extend %1 ["First ", %j] : !ctx
    %3 = lm.prefill %2 : !ctx
    %4 = lm.extend %3 [" then ", %late] : !ctx
    %5, %t = lm.gen %4 {id = "f/t"} : !ctx, !text
    %6 = lm.extend %5 [%t] : !ctx
    lm.return %6 (%t) {structure = "{\"leaf\":0}"}
  }
}
"""


def test_instances_that_share_a_prefix_run_side_by_side():
    essays = ["birds fly", "ants dig", "birds sing", "ants work", "birds fly"]
    found = schedule_batch(plan_of(JUDGE), [{"essay": essay} for essay in essays])
    assert found.order == (1, 3, 0, 4, 2)
    head = len("You grade essays.Essay:\n")
    tail = len("Judge its tone.") + len("Judge its logic.")
    assert [entry.shared_characters for entry in found.entries] == [
        0,
        head + len("ants "),
        head,
        head + len("birds fly") + tail,
        head + len("birds "),
    ]


def test_texts_count_in_the_order_in_which_contexts_use_them():
    rows = [("z", "b"), ("a", "b"), ("m", "a")]
    inputs = [{"late": late, "early": early, "n": 1} for late, early in rows]
    assert schedule_batch(plan_of(TWO_TEXTS), inputs).order == (2, 1, 0)


def test_what_does_not_fit_is_left_to_the_run():
    inputs = [{"early": "b", "late": "", "n": 1}, {}, {"early": 7, "late": "x"}, {"early": "a", "late": None}]
    found = schedule_batch(plan_of(TWO_TEXTS), inputs)
    assert sorted(found.order) == [0, 1, 2, 3]
    assert found.order[:2] == (1, 2)
    assert schedule_batch(plan_of(TWO_TEXTS), []).entries == ()


@given(st.lists(st.text("ab", max_size=6), max_size=12))
def test_order_is_depth_first(essays: list[str]):
    """Whatever two instances share, every instance between them shares too."""
    found = schedule_batch(plan_of(JUDGE), [{"essay": essay} for essay in essays])
    ordered = [essays[index] for index in found.order]
    assert ordered == sorted(essays)
    for length in range(7):
        prefixes = [essay[:length] for essay in ordered if len(essay) >= length]
        blocks = [prefix for place, prefix in enumerate(prefixes) if not place or prefix != prefixes[place - 1]]
        assert len(blocks) == len(set(blocks))


IN_REGIONS = r"""
module @f {
  func @f(%first: !text, %dims: !list<!text>, %last: !text, %flag: !bool) {
    %0 = lm.context : !ctx
    %1 = cf.loop (%0, 0, %first) : !ctx ^condition(%c: !ctx, %n: !int, %a: !text) {
      %go = py.call lt (%n, 2) : !bool
      %d = lm.extend %c ["Round of ", %a] : !ctx
      cf.condition %go (%d)
    } ^body(%e: !ctx) {
      %g = lm.extend %e ["!"] : !ctx
      %h, %t = lm.gen %g {id = "f/t"} : !ctx, !text
      cf.yield (%h, 1, %t)
    }
    %ts = cf.map (%dims) : !list<!text> ^body(%i: !int, %dim: !text) {
      %u = py.call str.upper (%dim) : !text
      %j = lm.extend %0 ["Judge ", %u] : !ctx
      %k = cf.cond %flag : !ctx ^then() {
        %l = lm.extend %j [%last] : !ctx
        cf.yield (%l)
      } ^otherwise() { cf.yield (%j) }
      %m, %v = lm.gen %k (%i) {id = "f/v$"} : !ctx, !text
      cf.yield (%v)
    }
    lm.return %1 (%ts) {structure = "{\"leaf\":0}"}
  }
}
"""


def test_texts_in_regions_count_as_in_their_first_run():
    rows = [("b", ["x"], "z"), ("a", ["y"], "z"), ("b", ["X"], "y"), ("a", [], "a"), ("b", ["w"], "a")]
    inputs = [{"first": first, "dims": dims, "last": last, "flag": True} for first, dims, last in rows]
    found = schedule_batch(plan_of(IN_REGIONS), inputs)
    assert found.order == (3, 1, 4, 2, 0)
    known = [len("Round of "), len("!Judge ")]
    assert [entry.shared_characters for entry in found.entries] == [
        0,
        known[0] + 1 + known[1],  # no element is known of the one before
        known[0],
        known[0] + 1 + known[1],
        known[0] + 1 + known[1] + 1,
    ]


def test_calls_grow_with_the_rows_of_the_batch():
    plan = plan_of(JUDGE)

    def calls(count: int) -> int:
        inputs = [{"essay": "x" * 2000 + str(index * 7919 % count)} for index in range(count)]
        return calls_of(lambda: schedule_batch(plan, inputs))

    calls(100)
    assert calls(2000) < 15 * calls(200)


def test_calls_grow_no_faster_than_the_length_of_a_row():
    plan = agents_plan(1, 1)
    room = Room(1 << 22, batch=8)
    short, long = (
        calls_of(lambda size=size: schedule_batch(plan, [{"task": "ab c" * size}, {"task": "d"}], room))
        for size in (30_000, 120_000)
    )
    assert long < 8 * short


def test_a_row_that_exceeds_the_context_comes_first_and_costs_nothing():
    plan = agents_plan(1, 1)
    room = Room(4096, batch=8, context_length=1024)
    rows = [{"task": "one"}, {"task": "x y " * 1_000_000}, {"task": "two"}]
    schedule = schedule_batch(plan, rows, room)
    assert schedule.order == (1, 0, 2)
    assert schedule.entries[0].values == ()
    assert calls_of(lambda: schedule_batch(plan, rows, room)) < 20_000


def test_a_row_that_may_fit_the_context_takes_part():
    room = Room(4096, batch=8, context_length=1024)
    rows = [{"task": "one"}, {"task": "x y " * 1500}, {"task": "two"}]
    assert all(entry.values for entry in schedule_batch(agents_plan(1, 1), rows, room).entries)


def test_a_batch_of_rows_that_all_exceed_the_context_is_a_schedule():
    room = Room(64, batch=8, context_length=64)
    rows = [{"task": "x" * 10_000}, {"task": "y" * 10_000}]
    assert schedule_batch(agents_plan(1, 1), rows, room).order == (0, 1)


AGENTS = r"""
module @f {
  func @f(%task: !text) {
    %0 = lm.context : !ctx
    %1 = lm.extend %0 ["FIRST", %task] : !ctx
    %2, %a = lm.gen %1 {id = "f/a", max_tokens = 8} : !ctx, !text
    %3 = lm.extend %0 ["SECOND", %a] : !ctx
    %4, %b = lm.gen %3 {id = "f/b", expected_tokens = 5, max_tokens = 200} : !ctx, !text
    %5 = lm.extend %2 ["AGAIN"] : !ctx
    %6, %c = lm.gen %5 {id = "f/c", max_tokens = 200} : !ctx, !text
    lm.return %6 (%b, %c) {structure = "[{\"leaf\":0},{\"leaf\":1}]"}
  }
}
"""


def agents_plan(first: int, second: int):
    return plan_of(AGENTS.replace("FIRST", "You are the first. " * first).replace("SECOND", "The second! " * second))


def test_stages_say_what_a_request_goes_on_from_and_waits_for():
    found = schedule_batch(agents_plan(1, 1), [{"task": "t"}])
    assert [(stage.id, stage.base, stage.answered, stage.after, stage.output) for stage in found.stages] == [
        ("f/a", None, False, (), 8),
        ("f/b", None, False, (0,), 5),
        ("f/c", 0, True, (0,), 100),
    ]
    assert found.stages[0].pieces == ("You are the first. ", Known(0))
    assert found.stages[1].pieces == ("The second! ", Answer(0))
    assert found.stages[2].pieces == ("AGAIN",)


@pytest.mark.parametrize("through_a_file", [False, True])
def test_requests_of_a_schedule_share_what_the_prompts_share(through_a_file: bool):
    tasks = ["abcdefgh12345678", "abcdefgh99999999", "zzzzzzzz"]
    found = schedule_batch(agents_plan(4, 4), [{"task": task} for task in tasks])
    if through_a_file:
        found = load_schedule(dump_schedule(found))
    first, second, third = (found.requests()[3 * place : 3 * place + 3] for place in range(3))
    head = 19  # of 76 characters
    assert [request.tokens.size for request in first] == [head + 4, 12 + 8, head + 4 + 8 + 2]
    assert [request.known for request in first] == [head + 4, 12, head + 4]
    assert common_prefix_length(first[0].tokens, second[0].tokens) == head + 2
    assert common_prefix_length(first[0].tokens, third[0].tokens) == head
    assert common_prefix_length(first[1].tokens, third[1].tokens) == 12
    assert common_prefix_length(first[2].tokens, np.concatenate([first[0].tokens, first[0].generated])) == head + 4 + 8
    assert first[2].after == (first[0].id,)


def test_the_pool_decides_how_many_instances_go_kind_by_kind():
    """Two system prompts of 300 tokens: where one of them fits, instances go kind by kind."""
    inputs = [{"task": f"{number:04} " * 8} for number in range(12)]
    plan = agents_plan(64, 100)
    assert schedule_batch(plan, inputs).layout == Layout()
    assert schedule_batch(plan, inputs, Room(100_000, batch=1)).layout == Layout(block=2)
    assert schedule_batch(plan, inputs, Room(450, batch=1)).layout.block > 1


REWRITTEN = """
module @f {
  func @f(%question: !text, %document: !text) {
    %0 = lm.context : !ctx
    %1 = lm.extend %0 ["Rewrite: ", %question] : !ctx
    %2, %a = lm.gen %1 {id = "f/a", max_tokens = 8} : !ctx, !text
    %3 = lm.extend %0 ["Read: ", %document, " Answer: ", %a] : !ctx
    %4, %b = lm.gen %3 {id = "f/b", max_tokens = 8} : !ctx, !text
    lm.return %4 (%b) {structure = "{\\"leaf\\":0}"}
  }
}
"""


def test_the_request_that_shares_most_decides():
    """Questions are all different and come first; documents are few and long."""
    documents = ["apples " * 30, "birds " * 30]
    rows = [("d", 0), ("c", 1), ("b", 0), ("a", 1)]
    inputs = [{"question": question, "document": documents[number]} for question, number in rows]
    found = schedule_batch(plan_of(REWRITTEN), inputs)
    assert found.order == (2, 0, 3, 1)
    assert [entry.shared_characters > 180 for entry in found.entries] == [False, True, False, True]
    first, second = (request for request in found.requests() if request.id in ("2/1", "0/1"))
    assert common_prefix_length(first.tokens, second.tokens) >= 210 // 4
    same = [{"question": question, "document": "the same " * 30} for question, _ in rows]
    assert schedule_batch(plan_of(REWRITTEN), same).order == (3, 2, 1, 0)


def test_rows_that_lack_a_value_come_first_whatever_decides():
    documents = ["apples " * 30, "birds " * 30]
    inputs = [{"question": f"q{5 - number}", "document": documents[number % 2]} for number in range(4)]
    inputs.insert(2, {"question": "q"})
    found = schedule_batch(plan_of(REWRITTEN), inputs)
    assert found.order == (2, 3, 0, 4, 1)


LONG_OR_SHORT = """
module @f {
  func @f(%text: !text) {
    %0 = lm.context : !ctx
    %1 = lm.extend %0 ["About: ", %text] : !ctx
    %2, %a = lm.gen %1 {id = "f/a", expected_tokens = 40, max_tokens = 40} : !ctx, !text
    lm.return %2 (%a) {structure = "{\\"leaf\\":0}"}
  }
}
"""


def test_long_texts_are_mixed_with_short_ones():
    """Sorted by their texts the long ones would all come first."""
    letters = random.Random(0)
    long = ["A" + "".join(letters.choices("xyz", k=8000)) for _ in range(16)]
    short = ["B" + "".join(letters.choices("xyz", k=80)) for _ in range(48)]
    inputs = [{"text": text} for text in (*long, *short)]
    plan = plan_of(LONG_OR_SHORT)
    sorted_texts = schedule_batch(plan, inputs)
    assert sorted_texts.layout == Layout()
    assert all(index < 16 for index in sorted_texts.order[:16])
    found = schedule_batch(plan, inputs, Room(100_000, batch=16))
    assert found.layout == Layout(InstanceOrder.MIXED)
    assert sorted(found.order) == [*range(64)]
    assert found.order[0] >= 16
    assert 4 <= sum(index < 16 for index in found.order[24:48]) <= 12
    assert load_schedule(dump_schedule(found)) == found
    assert schedule_batch(plan, inputs, layout=found.layout) == found
    assert schedule_batch(plan, inputs[16:], Room(100_000, batch=16)).layout == Layout()


CHAT = """
module @f {
  func @f(%first: !text, %second: !text) {
    %0 = lm.context : !ctx
    %1 = lm.extend %0 ["Chat: ", %first] : !ctx
    %2, %a = lm.gen %1 {id = "f/a", MEASURED max_tokens = 100} : !ctx, !text
    %3 = lm.extend %2 [" ", %second, %a, %first] : !ctx
    %4, %b = lm.gen %3 {id = "f/b", MEASURED max_tokens = 100} : !ctx, !text
    lm.return %4 (%b) {structure = "{\\"leaf\\":0}"}
  }
}
"""


def chat_plan(measured=""):
    return plan_of(CHAT.replace("MEASURED", measured))


def test_what_inputs_say_behind_an_answer_counts_but_is_not_shared():
    rows = [{"first": "a" * 40, "second": "z" * 400}, {"first": "a" * 40, "second": "z" * 400}, {"first": "b" * 40}]
    found = schedule_batch(chat_plan(), rows)
    assert found.order == (0, 1, 2)
    assert [entry.shared_characters for entry in found.entries] == [0, 46, 6]
    first, second, *_ = found.requests()
    assert first.tokens.size == 2 + 10
    assert second.tokens.size == 12 + 50 + 1 + 100 + 50 + 10
    assert second.known == 12  # what is known stops where an answer comes


def test_what_inputs_say_behind_an_answer_orders_nothing():
    rows = [{"first": "a", "second": second} for second in "cab"]
    assert schedule_batch(chat_plan(), rows).order == (0, 1, 2)


def test_a_text_that_comes_again_behind_an_answer_is_kept_for_each_instance(monkeypatch: pytest.MonkeyPatch):
    """The first text is the same for all; behind the answer each has it on its own."""
    plan, same = chat_plan("expected_tokens = 30,"), "a" * 4000
    inputs = [{"first": same, "second": f"{number:02}"} for number in range(12)]
    assert schedule_batch(plan, inputs, Room(20_000, batch=4)).layout == Layout(block=8)
    tried: list[int] = []

    def trial(requests: Any, **more: Any) -> Any:
        tried.append(more["layout"].block)
        return coarse_trial(requests, **more)

    monkeypatch.setattr(schedule, "coarse_trial", trial)
    schedule_batch(plan, inputs, Room(9_000, batch=4))
    assert tried == [1, 4, 8, 12]


def test_what_fails_behind_an_answer_leaves_the_rest():
    text = CHAT.replace("MEASURED", "").replace('["Chat: ", %first]', '["Chat: ", %f]').replace("%second, %a", "%u, %a")
    computes = "    %u = py.call str.upper (%second) : !text\n    %f = py.call str.strip (%first) : !text\n"
    plan = plan_of(text.replace("    %0 = lm.context", computes + "    %0 = lm.context"))
    found = schedule_batch(plan, [{"first": "b ", "second": 7}, {"first": " a", "second": "x"}])
    assert found.order == (1, 0)
    assert found.entries[1].shared_characters == len("Chat: ")
    assert len(found.entries[1].values) == 1


def test_blocks_suit_answers_that_are_as_long_as_they_may_be():
    """Half as long, all chats would stay in the pool; nobody has measured that they are."""
    inputs = [{"first": f"{number:02}" + "a" * 78, "second": f"{number:02}" + "b" * 38} for number in range(12)]
    room = Room(1450, batch=4)
    assert schedule_batch(chat_plan("expected_tokens = 30,"), inputs, room).layout == Layout(block=8)
    assert schedule_batch(chat_plan(), inputs, room).layout == Layout()


def test_answers_that_have_to_be_long_are_expected_to_be():
    (first, _) = schedule_batch(chat_plan("min_tokens = 90,"), [{"first": "a", "second": "b"}]).stages
    assert first.output == 90


def test_tokens_are_as_long_as_the_engine_cuts_them():
    inputs = [{"first": f"{number:02}" + "a" * 78, "second": f"{number:02}" + "b" * 38} for number in range(12)]
    plan = chat_plan("expected_tokens = 30,")
    of_one = Room(1450, batch=4, tokens_of=len)
    of_five = Room(1450, batch=4, tokens_of=lambda text: len(text) // 5)
    assert schedule_batch(plan, inputs, of_one).layout == Layout()
    assert schedule_batch(plan, inputs, of_five).layout == Layout(block=8)


def test_all_of_a_text_counts_for_the_length_of_tokens():
    """A text that begins in English and goes on in Chinese; half of the other one's."""
    text = "and so " * 200 + "天" * 2800
    rows = [{"first": text, "second": "and so " * 100}] * 2
    room = Room(4000, tokens_of=lambda part: len(part) // 4 + 2 * part.count("天"))
    assert 0.5 < schedule_batch(chat_plan(), rows, room).characters < 1.5


def test_text_that_no_tokenizer_takes_is_left_to_the_run():
    counted: list[str] = []

    def tokens_of(text: str) -> int:
        counted.append(text)
        return len(text.encode("utf-8"))

    inputs = [{"first": "\ud800", "second": "x"}, {"first": "y", "second": "\udfff"}]
    assert schedule_batch(chat_plan(), inputs, Room(4000, tokens_of=tokens_of)).layout == Layout(block=2)
    assert counted == ["?", "x"]


def test_room_is_that_of_the_requests_that_an_engine_runs_at_once():
    def room(*info: Any, **more: Any) -> Room | None:
        tokenizer = SimpleNamespace(encode=lambda text: text.split())
        return Room.of(
            cast("Engine", SimpleNamespace(info=EngineInfo("e", 4096, *info, **more), tokenizer=tokenizer)), 8
        )

    assert room() is None
    assert room(450) == Room(450, batch=8, context_length=4096)
    assert room(450, max_running=2) == Room(450, batch=2, context_length=4096)
    found = room(450, max_running=16)
    assert found == Room(450, batch=8, context_length=4096)
    assert found is not None
    assert found.tokens_of is not None
    assert found.tokens_of("three short words") == 3
