"""Programs in sglang's language, in the manner of its public examples and benchmarks; run on the toy engine."""

# ruff: noqa: PLW2901 - branches are appended to in place

import json
from typing import Any

import lmc.sglang as sgl

FEW_SHOT = "Q: What is the capital of France?\nA: Paris\nQ: What is the capital of Italy?\nA: Rome\n"
CHARACTER = (
    r"\{\n"
    r'    "name": "[a-z]{1,8}",\n'
    r'    "house": "(Gryffindor|Slytherin|Ravenclaw|Hufflepuff)",\n'
    r'    "age": [0-9]{1,2}\n'
    r"\}"
)
PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 6},
        "age": {"type": "integer", "minimum": 0, "maximum": 120},
    },
    "required": ["name", "age"],
    "additionalProperties": False,
}


@sgl.function
def few_shot_qa(s, question):
    s += "The following are questions with answers.\n\n"
    s += FEW_SHOT
    s += "Q: " + question + "\n"
    s += "A:" + sgl.gen("answer", stop="\n", max_tokens=12)


@sgl.function
def multi_turn(s, question_1, question_2):
    s += sgl.system("You are a helpful assistant.")
    s += sgl.user(question_1)
    s += sgl.assistant(sgl.gen("answer_1", max_tokens=16))
    s += sgl.user(question_2)
    s += sgl.assistant(sgl.gen("answer_2", max_tokens=16))


@sgl.function
def tip_suggestion(s):
    s += "Here are two tips for staying healthy: 1. Balanced Diet. 2. Regular Exercise.\n\n"
    forks = s.fork(2)
    for i, f in enumerate(forks):
        f += f"Now, expand tip {i + 1} into a paragraph:\n"
        f += sgl.gen("detailed_tip", max_tokens=12, stop="\n\n")
    s += "Tip 1:" + forks[0]["detailed_tip"] + "\n"
    s += "Tip 2:" + forks[1]["detailed_tip"] + "\n"
    s += "In summary" + sgl.gen("summary", max_tokens=8)


@sgl.function
def tool_use(s, question):
    s += "To answer this question: " + question + ". "
    s += "I need to use a " + sgl.gen("tool", choices=["calculator", "search engine"]) + ". "
    if s["tool"] == "calculator":
        s += "The math expression is" + sgl.gen("expression", max_tokens=8)
    elif s["tool"] == "search engine":
        s += "The key word to search is" + sgl.gen("word", max_tokens=8)


@sgl.function
def character(s, name):
    s += name + " is a character in Harry Potter. Please fill in the following information about this character.\n"
    s += "The JSON output is:\n" + sgl.gen("json_output", max_tokens=120, regex=CHARACTER)


@sgl.function
def person(s, text):
    s += sgl.user("Who is this about? " + text)
    s += sgl.assistant(sgl.gen("person", max_tokens=80, json_schema=json.dumps(PERSON)))
    s += sgl.user("Once more: " + s["person"])


@sgl.function
def parallel_sample(s, question, n):
    s += "Question: Compute 1 + 2 + 3\nReasoning: I need to use a calculator.\nTool: calculator\nAnswer: 6\n"
    s += "Question: " + question + "\n"
    forks = s.fork(n)
    forks += "Reasoning:" + sgl.gen("reasoning", stop="\n", max_tokens=12) + "\n"
    forks += "Tool:" + sgl.gen("tool", choices=["calculator", "browser"]) + "\n"
    forks += "Answer:" + sgl.gen("answer", stop="\n", max_tokens=8) + "\n"
    forks.join()


@sgl.function
def tree_of_thought(s, question, branches):
    s += sgl.user("Propose a plan for: " + question)
    plans = s.fork(branches)
    plans += sgl.assistant(sgl.gen("plan", max_tokens=10))
    for plan in plans:
        plan += sgl.user("Carry it out.")
        solutions = plan.fork(branches)
        solutions += sgl.assistant(sgl.gen("answer", max_tokens=10))
        for solution in solutions:
            solution += sgl.user("Score it from 1 to 5.")
            solution += sgl.assistant(sgl.select("score", ["1", "2", "3", "4", "5"]))
        solutions.join()
    plans.join()


def propose(s, question, branches):
    s += sgl.user("Propose a plan for: " + question)
    forks = s.fork(branches)
    forks += sgl.assistant(sgl.gen("plan", max_tokens=8))
    return forks


def carry_out(s, branches):
    s += sgl.user("Carry it out.")
    forks = s.fork(branches)
    forks += sgl.assistant(sgl.gen("answer", max_tokens=8))
    return forks


@sgl.function
def tree_search(s, question, branches):
    """As the public benchmark writes it: in plain functions that are given states, joined from the leaves up."""
    to_join = []
    plans = propose(s, question, branches)
    to_join.append(plans)
    solutions = []
    for plan in plans:
        forks = carry_out(plan, branches)
        to_join.append(forks)
        solutions.extend(forks)
    for solution in solutions:
        solution += sgl.user("Score it.") + sgl.assistant(sgl.gen_int("score", max_tokens=2))
    for forks in reversed(to_join):
        forks.join()


@sgl.function
def expand(s, tip):
    s += "Please expand the following tip into a detailed paragraph:" + tip + "\n"
    s += sgl.gen("detailed_tip", max_tokens=10)
    return "expanded " + tip


@sgl.function
def calls_programs(s, topic):
    s += "Here are 2 tips for " + topic + ".\n"
    s += "1." + sgl.gen("tip_1", stop=["\n", ":", "."], max_tokens=8) + "\n"
    s += "2." + sgl.gen("tip_2", stop=["\n", ":", "."], max_tokens=8) + "\n"
    branch1 = expand(tip=s["tip_1"])
    branch2 = expand(s["tip_2"], temperature=0)
    s += "Tip 1: " + branch1["detailed_tip"] + "\n"
    s += "Tip 2: " + branch2["detailed_tip"] + "\n"
    s += branch2.text()
    s += "In summary" + sgl.gen("summary", max_tokens=8)
    return branch1.ret_value


@sgl.function
def roles_as_functions(s, question):
    s += sgl.system("Be brief.") + sgl.user(question)
    s += sgl.assistant("Well, " + sgl.gen("answer", max_tokens=8))


@sgl.function
def roles_as_methods(s, question):
    s.system("Be brief.")
    s.user(question)
    s.assistant("Well, " + sgl.gen("answer", max_tokens=8))


@sgl.function
def roles_as_blocks(s, question):
    with s.system():
        s += "Be brief."
    with s.user():
        s += question
    with s.assistant():
        s += "Well, "
        s += sgl.gen("answer", max_tokens=8)


@sgl.function
def roles_by_ends(s, question):
    s += sgl.system_begin() + "Be brief." + sgl.system_end()
    s += sgl.user_begin()
    s += question
    s += sgl.user_end()
    s += sgl.assistant_begin() + "Well, " + sgl.gen("answer", max_tokens=8) + sgl.assistant_end()


@sgl.function
def scopes(s, topic):
    s += "Topic: " + topic + "\n"
    with s.var_scope("line"):
        s += "It is " + sgl.gen("adjective", max_tokens=5) + " and "
        with s.var_scope("tail"):
            s += sgl.gen("other", max_tokens=5) + "."
    s += "\nAgain: " + s["line"]


@sgl.function
def scope_in_a_message(s, topic):
    s += sgl.user(topic)
    with s.assistant():
        s += "Answer: "
        with s.var_scope("said"):
            s += "so " + sgl.gen("word", max_tokens=5)
    s += sgl.user("You said: " + s["said"])


@sgl.function
def parallel_encoding(s, question, context_0, context_1, context_2):
    s += "USER: I will ask a question based on some statements.\n"
    contexts = [context_0, context_1, context_2]
    forks = s.fork(len(contexts))
    forks += lambda i: f"Statement {i}: " + contexts[i] + "\n"
    forks.join(mode="concate_and_append")
    s += "Question: " + question + "\nASSISTANT:" + sgl.gen("answer", max_tokens=8)


@sgl.function
def skeleton(s, points):
    s += sgl.user("Expand each point.")
    with s.assistant():
        forks = s.fork(len(points))
        for i, point in enumerate(points):
            forks[i] += f"{i}. {point}: "
            forks[i] += sgl.gen("text", max_tokens=6) + "\n"
        forks.join("concate_and_append")
    s += sgl.user("Thanks.")


@sgl.function
def one_for_each(s, items):
    s += "List:\n"
    forks = s.fork(3)
    forks += [f"{item}: " for item in items]
    forks += (sgl.gen("a", max_tokens=4), sgl.gen("b", max_tokens=5), "nothing")
    forks.join()


@sgl.function
def with_a_copy(s, text):
    s += text
    with s.copy() as branch:
        branch += " aside: " + sgl.gen("aside", max_tokens=6)
    s += " then: " + s["aside"][0]


@sgl.function
def multi_stage(s, context, companies, question):
    s += context + "\nResearch question: " + question + "\n\n"
    tickers = list(companies.keys())
    forks = s.fork(len(tickers))
    for i, ticker in enumerate(tickers):
        forks[i] += f"--- {ticker} ---\n{companies[ticker]}\nAnalysis of {ticker}:\n"
        forks[i] += sgl.gen(f"analysis_{ticker}", max_tokens=10, stop="\n\n", temperature=0.3)
    s += "Analyses:\n"
    for i, ticker in enumerate(tickers):
        s += f"\n[{ticker}] " + forks[i][f"analysis_{ticker}"]
    s += "\n\nRanking:\n" + sgl.gen("pick", max_tokens=10, temperature=0.2)


@sgl.function
def answers(s, question):
    s += sgl.user(question)
    s += sgl.assistant(sgl.gen("answer", n=3, max_tokens=8))
    s += sgl.user("Another one.")
    s += sgl.assistant(sgl.gen("more", max_tokens=8))


@sgl.function
def typed(s):
    s += "Age: " + sgl.gen_int("age", max_tokens=3) + "\n"
    s += "Name: " + sgl.gen_string("name", temperature=0, max_tokens=40) + "\n"
    s += "Height: " + sgl.gen("height", dtype=float, max_tokens=4) + "\n"
    s += "Old: " + sgl.gen("old", dtype="bool", max_tokens=6)


@sgl.function
def choice_methods(s, question, options):
    s += question
    first = s.fork(3)
    first[0] += sgl.select("way", options, choices_method=sgl.token_length_normalized)
    first[1] += sgl.select("way", options, choices_method=sgl.greedy_token_selection)
    first[2] += sgl.gen("way", choices=options, choices_method=sgl.unconditional_likelihood_normalized)
    first.join()


@sgl.function
def cot_decoding(s, question, width):
    s += sgl.user("Question: " + question + "\nAnswer:")
    s += sgl.assistant_begin()
    first = s.fork(1)[0]
    forks = s.fork(width)
    first += sgl.gen("top", max_tokens=1, return_logprob=True, top_logprobs_num=width, return_text_in_logprobs=True)
    tops = first.get_meta_info("top")["output_top_logprobs"][0]
    for fork, (logprob, _, text) in zip(forks, tops, strict=True):
        fork.set_var("logprob", logprob)
        fork += text
        fork += sgl.gen("answer", temperature=0, max_tokens=6)
    forks.join()


@sgl.function
def react(s, question, rounds):
    s += "Question: " + question + "\n"
    taken = 0
    for i in range(1, rounds + 1):
        taken = i
        s += f"Thought {i}:" + sgl.gen("thought", stop=["\n"], max_tokens=10)
        s += f"\nAction {i}: " + sgl.select("action", ["search", "finish"])
        if s["action"] == "finish":
            break
        s += f"\nObservation {i}: nothing found\n"
    return taken


@sgl.function
def gives_up(s, question, hints):
    s += "Question: " + question + "\n"
    s += "Is it hard? " + sgl.select("hard", ["yes", "no"]) + "\n"
    if s["hard"] == "no":
        s += "Answer:" + sgl.gen("answer", max_tokens=5)
        return "at once"
    forks = s.fork(len(hints))
    forks += lambda i: hints[i] + ": "
    forks += sgl.gen("thought", max_tokens=5) + "\n"
    forks.join("concate_and_append")
    forks.join()
    s += "Answer:" + sgl.gen("answer", max_tokens=5)
    return s["thought"]


@sgl.function
def decides_in_branches(s, topics):
    s += "Grade each.\n"
    forks = s.fork(len(topics))
    for fork, topic in zip(forks, topics, strict=True):
        fork += topic + ": " + sgl.select("grade", ["good", "bad"])
        if fork["grade"] == "bad":
            fork += " because" + sgl.gen("reason", max_tokens=6)
        else:
            fork += "!"
    forks.join("concate_and_append")
    return [fork["grade"] for fork in forks]


@sgl.function
def keeps_values(s, text):
    s["given"] = text
    s.set_var("number", 3)
    s += s["given"] + "!"
    if "given" in s and "other" not in s:
        s += s.get_var("given")
    s.sync()
    return s.error()


@sgl.function
def sampled(s, text, limit):
    s += text
    s += sgl.gen(
        "all",
        max_tokens=limit,
        min_tokens=2,
        temperature=0.9,
        top_p=0.9,
        top_k=20,
        min_p=0.01,
        frequency_penalty=0.1,
        presence_penalty=0.2,
        stop=["zz"],
        stop_token_ids=[3],
    )
    s += sgl.gen("full", max_tokens=10, ignore_eos=True)


@sgl.function
def defaults(s, text):
    s += text + sgl.gen("free") + "|" + sgl.gen("own", max_tokens=3, temperature=0)


@sgl.function
def reads_messages(s, text):
    s += sgl.user(text)
    s += sgl.assistant(sgl.gen("answer", max_tokens=4))
    s += sgl.user(str(len(s.messages())) + " messages so far")
    return s.messages()


@sgl.function
def changes_messages(s, text):
    s += sgl.user(text)
    first, second = s.messages(), s.messages()
    for _ in range(2):
        s += sgl.assistant(sgl.gen("answer", max_tokens=2, temperature=1.0))
        if "e" in s["answer"]:
            s += sgl.user("Why?")
    first[0]["content"] = s["answer"]
    first.append({"role": "user", "content": "more"})
    roles = [message["role"] for message in s.messages()]
    with s.user():
        s += "open " + str(len(roles))
        first += s.messages()[-1:]
    return first, second, first is second, roles


@sgl.function
def keeps_expressions(s, topic: str):
    """Expressions, handles and methods have names between statements."""
    begin, end = sgl.user_begin(), sgl.user_end()
    ask = sgl.gen("first", max_tokens=4, stop=topic)
    s += begin
    s += topic
    s += end
    with s.assistant():
        s += ask
    take = s.get_var
    choice = sgl.select("second", ["yes", "no", topic])
    s += sgl.assistant(choice)
    forks = s.fork(2)
    forks += [sgl.gen("third", max_tokens=3, return_logprob=True), topic]
    one = forks[0]
    s += one["third"]
    forks.join()
    s["kept"] = take("first") + s["second"]
    return s["kept"]


EVERY: dict[str, tuple[Any, dict[str, Any]]] = {
    "keeps_expressions": (keeps_expressions, {"topic": "rain"}),
    "few_shot_qa": (few_shot_qa, {"question": "What is the capital of Spain?"}),
    "multi_turn": (multi_turn, {"question_1": "Who are you?", "question_2": "Who made you?"}),
    "tip_suggestion": (tip_suggestion, {}),
    "tool_use": (tool_use, {"question": "What is 5 + 5?"}),
    "character": (character, {"name": "Ron Weasley"}),
    "person": (person, {"text": "Ada was 36."}),
    "parallel_sample": (parallel_sample, {"question": "Compute 5 + 2 + 4.", "n": 4}),
    "tree_of_thought": (tree_of_thought, {"question": "2 + 2", "branches": 2}),
    "tree_search": (tree_search, {"question": "2 + 2", "branches": 2}),
    "calls_programs": (calls_programs, {"topic": "staying healthy"}),
    "roles_as_functions": (roles_as_functions, {"question": "Why?"}),
    "roles_as_methods": (roles_as_methods, {"question": "Why?"}),
    "roles_as_blocks": (roles_as_blocks, {"question": "Why?"}),
    "roles_by_ends": (roles_by_ends, {"question": "Why?"}),
    "scopes": (scopes, {"topic": "rain"}),
    "scope_in_a_message": (scope_in_a_message, {"topic": "rain"}),
    "parallel_encoding": (
        parallel_encoding,
        {"question": "Who?", "context_0": "A is B.", "context_1": "C is D.", "context_2": "E is F."},
    ),
    "skeleton": (skeleton, {"points": ["diet", "sleep", "sport"]}),
    "one_for_each": (one_for_each, {"items": ["x", "y", "z"]}),
    "with_a_copy": (with_a_copy, {"text": "Once"}),
    "multi_stage": (
        multi_stage,
        {"context": "Chips.", "companies": {"AA": "makes a", "BB": "makes b"}, "question": "Which?"},
    ),
    "answers": (answers, {"question": "Name an animal."}),
    "typed": (typed, {}),
    "choice_methods": (choice_methods, {"question": "Is it? ", "options": ["yes", "no", "perhaps not"]}),
    "cot_decoding": (cot_decoding, {"question": "3 * 4", "width": 3}),
    "react": (react, {"question": "Who is it?", "rounds": 3}),
    "gives_up": (gives_up, {"question": "What is 7 * 8?", "hints": ["Count", "Guess"]}),
    "decides_in_branches": (decides_in_branches, {"topics": ["rain", "snow", "wind"]}),
    "keeps_values": (keeps_values, {"text": "hm"}),
    "sampled": (sampled, {"text": "So ", "limit": 12}),
    "defaults": (defaults, {"text": "Say: "}),
    "changes_messages": (changes_messages, {"text": "Hello"}),
    "reads_messages": (reads_messages, {"text": "hello"}),
}
"""Every program with arguments for it."""
