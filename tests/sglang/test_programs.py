"""Every program gives the same compiled (O0, O2) and as plain Python, and what its source says."""

import json
import re
from typing import Any

import pytest

import lmc.sglang as sgl
from lmc.sglang.options import Sampling
from tests.frontend.harness import FULL
from tests.frontend.interpret.forced import check_breaks
from tests.sglang import programs
from tests.sglang.programs import CHARACTER, EVERY, FEW_SHOT


def facts(state: sgl.ProgramState) -> dict[str, Any]:
    """All that a state shows."""
    names = list(state._names())
    metas = {name: meta_of(state, name) for name in names}
    values = {name: state[name] for name in names}
    return {"text": state.text(), "messages": state.messages(), "metas": metas, "gave": state.ret_value, **values}


def meta_of(state: sgl.ProgramState, name: str) -> Any:
    try:
        return state.get_meta_info(name)
    except KeyError:
        return None


def agreed(name: str, **sampling: Any) -> sgl.ProgramState:
    """The state of a program, the same in every way of running it."""
    function, arguments = EVERY[name]
    states = [function.run(**arguments, **sampling, backend=sgl.Backend("toy", level=level)) for level in ("O2", "O0")]
    states.append(function.eager(**arguments, **sampling, backend="toy"))
    compiled, *others = [without_reuse(facts(state)) for state in states]
    for other in others:
        assert other == compiled
    return states[0]


def without_reuse(found: dict[str, Any]) -> dict[str, Any]:
    """Facts without what may differ: how much of a prompt was computed before."""
    for meta in found["metas"].values():
        if isinstance(meta, dict):
            meta.pop("cached_tokens", None)
    return found


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_every_way_of_running_agrees(name: str, temperature: float):
    agreed(name, temperature=temperature)


@pytest.mark.parametrize("name", EVERY)
def test_the_whole_program_is_in_the_graph(name: str):
    function, arguments = EVERY[name]
    assert function.compile(**arguments, backend="toy").compiled.breaks == ()


def test_text_is_what_was_appended():
    state = agreed("few_shot_qa")
    question = "Q: What is the capital of Spain?\nA:"
    assert state.text() == "The following are questions with answers.\n\n" + FEW_SHOT + question + state["answer"]
    assert 0 < len(state["answer"]) <= 12
    assert "\n" not in state["answer"]
    assert state.messages() == []


def test_messages_of_a_chat():
    state = agreed("multi_turn")
    assert state.messages() == [
        {"role": "system", "content": "You are a helpful assistant."},
        {"role": "user", "content": "Who are you?"},
        {"role": "assistant", "content": state["answer_1"]},
        {"role": "user", "content": "Who made you?"},
        {"role": "assistant", "content": state["answer_2"]},
    ]
    assert state["answer_1"] != state["answer_2"]
    assert repr(state) == f"ProgramState({state.text()})"


def test_branches_are_read_by_number():
    state = agreed("tip_suggestion")
    found = re.fullmatch(
        r"Here are two .*?\n\nTip 1:(?P<one>.*?)\nTip 2:(?P<two>.*?)\nIn summary(?P<rest>.*)", state.text(), re.DOTALL
    )
    assert found is not None
    assert found["one"] != found["two"]
    assert found["rest"] == state["summary"]
    assert "detailed_tip" not in state


def test_the_way_taken_depends_on_the_choice():
    state = agreed("tool_use")
    assert state["tool"] in ("calculator", "search engine")
    taken, left = ("expression", "word") if state["tool"] == "calculator" else ("word", "expression")
    assert state.text().endswith(state[taken])
    assert left not in state


def test_a_regex_is_kept_to():
    assert re.fullmatch(CHARACTER, agreed("character")["json_output"])


def test_a_schema_gives_json_text():
    state = agreed("person")
    assert set(json.loads(state["person"])) == {"name", "age"}
    assert state.messages()[-1]["content"] == "Once more: " + state["person"]


def test_joined_branches_give_lists():
    state = agreed("parallel_sample", temperature=1.0)
    assert [len(state[name]) for name in ("reasoning", "tool", "answer")] == [4, 4, 4]
    assert set(state["tool"]) <= {"calculator", "browser"}
    assert len(set(state["reasoning"])) > 1, "branches draw differently"
    assert state.text().endswith("Question: Compute 5 + 2 + 4.\n")


def test_nested_branches_give_nested_lists():
    state = agreed("tree_of_thought", temperature=1.0)
    assert len(state["plan"]) == 2
    assert [len(answers) for answers in state["answer"]] == [2, 2]
    assert {score for scores in state["score"] for score in scores} <= set("12345")


def test_plain_functions_take_states():
    state = agreed("tree_search", temperature=1.0)
    assert [len(state[name]) for name in ("plan", "answer", "score")] == [2, 2, 2]
    assert len({score for scores in state["score"] for score in scores}) > 1


def test_programs_call_programs():
    state = agreed("calls_programs")
    assert state.ret_value == "expanded " + state["tip_1"]
    text = state.text()
    again = "Please expand the following tip into a detailed paragraph:" + state["tip_2"] + "\n"
    assert text.count(again) == 1
    second = text.split("Tip 2: ")[1].split("\n")[0]
    assert text.split(again)[1].startswith(second)


def test_three_spellings_of_roles_and_their_ends():
    spellings = ("roles_as_functions", "roles_as_methods", "roles_as_blocks", "roles_by_ends")
    # Draws are keyed by the program's name: greedy, they say the same.
    states = [agreed(name, temperature=0.0) for name in spellings]
    assert len({state.text() for state in states}) == 1
    assert states[0].messages()[0] == {"role": "system", "content": "Be brief."}
    assert states[0].messages()[-1]["content"] == "Well, " + states[0]["answer"]


def test_scopes_hold_what_was_appended_inside():
    state = agreed("scopes")
    assert state["tail"] == state["other"] + "."
    assert state["line"] == "It is " + state["adjective"] + " and " + state["tail"]
    assert state.text() == "Topic: rain\n" + state["line"] + "\nAgain: " + state["line"]


def test_a_scope_inside_a_message():
    state = agreed("scope_in_a_message")
    assert state["said"] == "so " + state["word"]
    assert state.messages()[1] == {"role": "assistant", "content": "Answer: " + state["said"]}


def test_texts_of_branches_in_order():
    statements = "Statement 0: A is B.\nStatement 1: C is D.\nStatement 2: E is F.\n"
    state = agreed("parallel_encoding")
    assert f"some statements.\n{statements}Question: Who?" in state.text()


def test_texts_of_branches_inside_a_message():
    state = agreed("skeleton")
    content = state.messages()[1]["content"]
    assert re.fullmatch(r"0\. diet: [^\0]{0,6}\n1\. sleep: [^\0]{0,6}\n2\. sport: [^\0]{0,6}\n", content)
    assert [message["role"] for message in state.messages()] == ["user", "assistant", "user"]


def test_one_item_for_each_branch():
    state = agreed("one_for_each")
    assert (len(state["a"]), len(state["b"])) == (1, 1)
    assert state.text() == "List:\n"


def test_a_copy_is_joined_at_its_end():
    state = agreed("with_a_copy")
    assert state.text() == "Once then: " + state["aside"][0]


def test_names_of_variables_may_be_made():
    state = agreed("multi_stage")
    analyses = re.findall(r"\[(AA|BB)\] ", state.text())
    assert analyses == ["AA", "BB"]
    assert state.text().endswith("Ranking:\n" + state["pick"])


def test_the_first_of_several_answers_is_appended():
    state = agreed("answers", temperature=1.0)
    assert len(state["answer"]) == len(set(state["answer"])) == 3
    assert state.messages()[1]["content"] == state["answer"][0]
    assert isinstance(state["more"], str)


def test_types_say_what_the_text_looks_like():
    state = agreed("typed")
    assert re.fullmatch(r"[+-]?[0-9]+", state["age"])
    assert re.fullmatch(r'"[\w\s]*"', state["name"])
    assert re.fullmatch(r"[+-]?([0-9]*\.)?[0-9]+", state["height"])
    assert state["old"] in ("True", "False")


def test_every_method_chooses_among_the_choices():
    state = agreed("choice_methods")
    assert len(state["way"]) == 3
    assert set(state["way"]) <= {"yes", "no", "perhaps not"}


def test_top_tokens_go_on_in_branches():
    state = agreed("cot_decoding", temperature=0.0)
    assert state["logprob"] == sorted(state["logprob"], reverse=True)
    assert len(state["answer"]) == 3


def test_a_loop_ends_when_the_program_says_so():
    state = agreed("react")
    rounds = state.text().count("Thought ")
    assert state.ret_value == rounds
    assert (state["action"] == "finish") == (rounds < 3) or rounds == 3


def test_an_early_return_ends_the_program():
    state = agreed("gives_up")
    if state["hard"] == "no":
        assert (state.ret_value, "thought" in state) == ("at once", False)
    else:
        assert state.ret_value == state["thought"]
        assert "Count: " + state["thought"][0] + "\nGuess: " + state["thought"][1] + "\nAnswer:" in state.text()


def test_branches_decide_by_themselves():
    state = agreed("decides_in_branches")
    parts = re.split("rain: |snow: |wind: ", state.text())[1:]
    assert [part.startswith("good!") for part in parts] == [grade == "good" for grade in state.ret_value]
    assert ["because" in part for part in parts] == [grade == "bad" for grade in state.ret_value]


def test_variables_can_be_set():
    state = agreed("keeps_values")
    assert (state["given"], state["number"], state.text(), state.ret_value) == ("hm", 3, "hm!hm", None)
    state["later"] = 1
    state.set_var("number", 4)
    assert (state["later"], state.get_var("number"), "later" in state) == (1, 4, True)


def test_all_sampling_arguments():
    state = agreed("sampled")
    assert 2 <= len(state["all"]) <= 12
    assert state.get_meta_info("full")["completion_tokens"] == 10
    assert state.get_meta_info("full")["finish_reason"] == {"type": "length", "length": 10}


def test_what_run_is_given_counts_where_a_generation_says_nothing():
    long = agreed("defaults", max_new_tokens=40, temperature=1.0, stop=["|"])
    short = agreed("defaults", max_new_tokens=2, temperature=1.0)
    assert len(short["free"]) <= 2 < len(long["free"])
    assert programs.defaults.run(text="Say: ", backend="toy").get_meta_info("free")["completion_tokens"] <= 128


def test_messages_are_there_while_it_runs():
    state = agreed("reads_messages")
    assert [message["role"] for message in state.ret_value] == ["user", "assistant", "user"]
    assert state.messages()[-1]["content"] == "2 messages so far"


@pytest.mark.parametrize("name", EVERY)
def test_a_continuation_from_anywhere_agrees_with_plain_python(name: str):
    function, arguments = EVERY[name]
    assert check_breaks(function, tuple, arguments, 40 if FULL else 10) > 0
    sampled = function._with(Sampling(temperature=1.0, max_new_tokens=5, top_k=7))
    assert check_breaks(sampled, tuple, arguments, 3 if FULL else 2) > 0
