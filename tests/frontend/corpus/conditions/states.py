"""Variables, branches, ids and roles of states under conditions."""

# Programs as users write them.
# ruff: noqa: B905, C420, F841, PLE0643, PLW0120, PLW2901, RET505, RUF100, SIM108
# pyright: basic, reportCallIssue=false, reportAttributeAccessIssue=false, reportPossiblyUnboundVariable=false

from lmc.frontend.language.messages import assistant, system, user
from tests.frontend.corpus.conditions.cases import condition
from tests.frontend.harness import effect


@condition()
def a_variable_of_one_arm(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        s.gen("y", max_tokens=2)
    s += "then"
    there = "y" in s
    return there, s.gen("z", max_tokens=2)


@condition()
def a_variable_of_one_arm_with_a_default(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        s.gen("y", max_tokens=2)
    elif "t" in x:
        s.gen("y", max_tokens=3)
    return s.get("y", "none"), s.get("y"), s.get("w", 2)


@condition()
def a_variable_of_one_arm_is_read(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        s.gen("y", max_tokens=2)
    s += "then"
    return s["y"]


@condition()
def a_variable_that_is_asked_for(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        s.gen("y", max_tokens=2)
    s += "then"
    if "y" in s:
        s += "was there: " + s["y"]
    else:
        s += "none"
    if "y" not in s:
        effect("not there")
    return s.gen("z", max_tokens=2)


@condition()
def a_variable_of_both_arms(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        s.gen("y", max_tokens=2)
    else:
        s.select("y", ["yes", "no"])
    s += s["y"]
    return s.gen("x", max_tokens=2), s["x"], s["y"]


@condition()
def roles_in_arms(s, a: str):
    s += system("be kind")
    s += user(a)
    with s.assistant():
        x = s.gen("x", max_tokens=4)
    if "e" in x:
        s += user("more")
        with s.assistant():
            s += "sure: "
            s.gen("y", max_tokens=3)
    else:
        with s.user():
            s += "else"
    s += assistant("end")
    return s.gen("z", max_tokens=2) if len(a) > 100 else s.text()


@condition()
def a_message_chosen_in_arms(s, a: str):
    s += user(a)
    with s.assistant():
        x = s.gen("x", max_tokens=4)
    if "e" in x:
        text = f"e: {x}"
    else:
        text = "none"
    s += user(text)
    with s.assistant():
        return s.gen("z", max_tokens=2)


@condition()
def roles_in_one_arm_alone(s, a: str):
    other = s.copy()
    other += a
    x = other.gen("x", max_tokens=4)
    if "e" in x:
        s += system("be kind")
    s += user(a)
    return s.text()


@condition()
def scores_of_both_arms(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        s.select("c", ["yes", "no"])
    else:
        s.select("c", ["p", "q"], "greedy_token")
    return s.meta("c")["scores"] if len(a) > 100 else s["c"], f"{s.meta('c')}"


@condition("meta data that only some ways have can't be captured yet")
def scores_of_one_arm(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        s.select("c", ["yes", "no"])
    else:
        s.gen("c", max_tokens=2)
    return s["c"], s.meta("c")


@condition()
def the_text_so_far_in_arms(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    before = s.text()
    if "e" in x:
        s += before
        shown = s.text()
    else:
        shown = before
    s += "end"
    return shown, s.text()


@condition()
def a_value_of_a_type_in_arms(s, a: str):
    s += a
    good = s.gen("good", dtype=bool, temperature=1.0)
    if good:
        score = s.gen("score", dtype=int, max_tokens=40)
    else:
        score = 0
    return score + 1, not good, s.gen("z", max_tokens=2)


@condition()
def a_schema_in_arms(s, a: str):
    s += a
    digit = {"type": "integer", "minimum": 0, "maximum": 9}
    schema = {"type": "object", "properties": {"k": digit}, "required": ["k"]}
    value = s.gen("o", schema=schema, max_tokens=300)
    if value["k"] > 5:
        s += f"ok {value['k']}"
    elif value["k"] > 2:
        s += "not ok, but positive"
    else:
        value = s.gen("o", schema=schema, max_tokens=300)
    return value["k"], s.gen("z", max_tokens=2)


@condition()
def a_choice_among_merged_texts(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        option = "first"
    else:
        option = "other" + x
    return s.select("c", [option, "none"]), s.gen("z", max_tokens=2)


@condition()
def samples_of_one_name_in_an_arm(s, a: str):
    s += a
    kept = s.gen("many", n=2, max_tokens=2, temperature=0.8)
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        s.gen("many", n=2, max_tokens=2, temperature=0.8)
    return kept
