"""The ordinary programs, each with inputs that take different paths on the toy engine."""

from collections.abc import Callable, MutableMapping, MutableSequence, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from lmc.frontend.program.function import JittedFunction
from tests.frontend.ordinary import (
    agents,
    chats,
    data,
    forms,
    grading,
    ideas,
    machines,
    reports,
    retries,
    retrieval,
    routing,
    searches,
    verification,
    votes,
    worklists,
)

Arguments = tuple[Any, ...]
Container = MutableSequence[Any] | MutableMapping[Any, Any]


@dataclass(frozen=True)
class Ordinary:
    """A program and its inputs; ``writes`` are containers of its module that its tools fill, empty before each run."""

    program: JittedFunction
    inputs: Sequence[Arguments]
    writes: tuple[Container, ...] = ()

    def runs(self) -> list[Callable[[], Arguments]]:
        """One function for each input, which makes the arguments for one run."""
        return [partial(self._fresh, given) for given in self.inputs]

    def _fresh(self, given: Arguments) -> Arguments:
        for container in self.writes:
            container.clear()
        return tuple(map(_copied, given))


def _copied(value: Any) -> Any:
    """A copy of plain containers; other objects are shared between runs."""
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(_copied, value))
    return value


SHORT_ESSAY = "Cats are good. They sleep."
LONG_ESSAY = "Trains are better than cars because they need less room. Still, people like their cars and keep them."
DIFF = """\
--- a/app.py
+++ b/app.py
@@ -1,3 +1,4 @@
 import os
-print(1)
+print(2)
+os.remove("x")
@@ -10,2 +11,1 @@
 def f():
-    pass
--- a/test.py
+++ b/test.py
@@ -1,1 +1,2 @@
 x = 1
+assert x
"""
TRANSCRIPT = """
Ann: we ship on Monday
Bob: I will write the tests
(laughter)
Cleo: and I update the documents
Ann: good, no new features until then
"""
DOCUMENT = (
    "The harbour was built in 1850 and widened twice. Today it is used by fishing boats, ferries and a few yachts. "
    "A new pier is planned, but money is short and the town has not decided."
)
GRID = {"colour": ["red", "blue"], "size": ["small", "large"], "shape": ["round", "square"]}
POSTS = [
    ("2024-03-04", "We moved."),
    ("2024-03-04", "New chairs."),
    ("2024-03-04", "Coffee is out."),
    ("2024-03-08", "Party!"),
    ("2024-03-20", "Too late."),
]

CASES: dict[str, Ordinary] = {
    "majority_vote": Ordinary(votes.majority_vote, [("Two lamps", 1), ("2 + 2?", 5), ("Is it late?", 3), ("Who?", 1)]),
    "weighted_vote": Ordinary(
        votes.weighted_vote, [("Good morning",), ("Cats fly.",), ("Water is wet.",), ("Prices rise.",)]
    ),
    "first_to_three": Ordinary(
        votes.first_to_three,
        [
            ("Lunch?", ["pizza", "soup"]),
            ("Where to?", ["sea", "hills", "town", "home", "lake"]),
            ("Colour?", ["red", "blue", "green"]),
            ("Day?", ["Monday", "Tuesday", "Friday", "Sunday"]),
        ],
    ),
    "ranked_choice": Ordinary(
        votes.ranked_choice,
        [("mayor", ["Ann", "Bob", "Cleo"], 5), ("food", ["fish", "rice"], 3), ("town", ["A", "B", "C", "D"], 4)],
    ),
    "beam_search": Ordinary(searches.beam_search, [("A dog", 2, 2), ("Rain", 1, 3), ("The end", 3, 1)]),
    "best_first": Ordinary(
        searches.best_first, [("Good morning", 3), ("bake bread", 3), ("learn to swim", 5), ("tidy up", 1)]
    ),
    "backtracking": Ordinary(
        searches.backtracking, [("What now?", 2), ("Hello", 2), ("flags", 2), ("lights", 3), ("a wall", 1)]
    ),
    "monte_carlo": Ordinary(searches.monte_carlo, [("Why is the sky blue?", 4), ("Hello?", 2), ("How?", 6)]),
    "minimax": Ordinary(
        searches.minimax,
        [("empty board", ["left", "right"]), ("endgame", ["king", "rook", "pawn"]), ("lost", ["resign"])],
    ),
    "answer_from_documents": Ordinary(
        retrieval.answer_from_documents, [("How is tea made?",), ("What is bread?",), ("Xyz?",)]
    ),
    "answer_with_citations": Ordinary(
        retrieval.answer_with_citations,
        [
            ("the moon", retrieval.LIBRARY),
            ("Is hot water in tea?", retrieval.LIBRARY),
            ("What falls from clouds?", retrieval.Retriever(retrieval.LIBRARY.documents, top_k=1)),
            ("Salt and beans?", retrieval.Retriever(retrieval.LIBRARY.documents[1:3])),
            ("Nothing", retrieval.LIBRARY),
        ],
    ),
    "multi_hop": Ordinary(retrieval.multi_hop, [("Is tea like coffee?", 3), ("rain", 2), ("zzz", 3)]),
    "rerank": Ordinary(
        retrieval.rerank,
        [
            ("cats", ["Cats sleep.", "Dogs bark.", "Cats purr.", "Fish swim."], 2),
            ("dogs", ["Dogs bark."], 1),
            ("birds", ["Birds sing.", "Stones are hard."], 3),
            ("nothing", [], 2),
        ],
    ),
    "few_shot_classifier": Ordinary(
        retrieval.few_shot_classifier,
        [("My battery broke.", 3), ("Thank you for the colours", 2), ("Where do I change the battery?", 4)],
    ),
    "balanced_shots": Ordinary(
        retrieval.balanced_shots,
        [(["It is too slow.", "Nice!"],), (["Why?", "How?", "The box was empty."],), (["Great colours"],)],
    ),
    "rubric_grade": Ordinary(grading.rubric_grade, [(SHORT_ESSAY,), (LONG_ESSAY,), ("",)]),
    "robust_score": Ordinary(grading.robust_score, [("Hello", 5), (SHORT_ESSAY, 3), (LONG_ESSAY, 5), ("Hm.", 1)]),
    "compare_both_orders": Ordinary(
        grading.compare_both_orders,
        [("Capital?", "Paris", "Rome"), ("Why?", "Because.", "I don't know."), ("Best?", "a", "b")],
    ),
    "league_table": Ordinary(
        grading.league_table,
        [("taste", ["tea", "coffee", "milk"]), ("speed", ["car", "bike"]), ("size", ["ant", "bee", "cow", "dog"])],
    ),
    "knockout": Ordinary(grading.knockout, [(["Ann", "Bob", "Cleo", "Dan"],), (["Ann", "Bob", "Cleo"],), (["Ann"],)]),
    "elo_ratings": Ordinary(grading.elo_ratings, [(["a", "b", "c"], 4), (["x", "y"], 2), (["p", "q", "r", "t"], 5)]),
    "json_with_retries": Ordinary(
        retries.json_with_retries,
        [("Ann", 4), ("Ann, 30, Rome", 4), ("Bob is 5", 3), ("nobody", 1), ("Cleo, 41, from Oslo", 6), ("Dan", 2)],
    ),
    "score_from_free_text": Ordinary(
        retries.score_from_free_text, [("Great!",), ("Bad.",), ("It was all right.",), ("Never again",)]
    ),
    "validated_booking": Ordinary(
        retries.validated_booking, [("Ann, two nights",), ("a week for Bob with breakfast",), ("tonight",), ("?",)]
    ),
    "date_from_text": Ordinary(
        retries.date_from_text,
        [
            ("Hello", "2025-06-01"),
            ("Good morning", "2025-06-01"),
            ("tomorrow", "2024-02-28"),
            ("on the 5th", "2025-06-01"),
            ("next year", "2030-12-31"),
            ("whenever", "2024-01-01"),
            ("Easter", "2026-03-03"),
        ],
    ),
    "cascade": Ordinary(retries.cascade, [("What is 2 + 2?", 0.5), ("Why?", 0.9), ("Who are you?", 1.01)]),
    "customer_service": Ordinary(
        routing.customer_service,
        [
            ("red wine",),
            ("I want my money back",),
            ("Where is my lamp?",),
            ("A desk please",),
            ("Hello",),
            ("Two chairs",),
        ],
        (routing.OUTBOX,),
    ),
    "smart_home": Ordinary(
        routing.smart_home,
        [
            ("a cat",),
            ("Too dark",),
            ("Louder!",),
            ("It is cold",),
            ("Play jazz",),
            ("Good night",),
            ("Music",),
            ("Hm",),
        ],
        (routing.OUTBOX,),
    ),
    "mail_triage": Ordinary(
        routing.mail_triage,
        [(["Win now!", "The server is down.", "Lunch?"],), (["Hi", "Invoice 7", "Re: Re:", "Help"],), ([],)],
    ),
    "assign_ticket": Ordinary(
        routing.assign_ticket,
        [("Login fails", "Since today."), ("Typo", "On the start page."), ("Slow", "All of it"), ("Leak", "Keys!")],
        (routing.OUTBOX,),
    ),
    "language_router": Ordinary(
        routing.language_router, [("Bonjour",), ("Where is it?",), ("Hallo Welt",), ("¿Qué?",), ("Ciao",)]
    ),
    "brainstorm": Ordinary(ideas.brainstorm, [("a party", 3), ("a name", 1), ("a gift", 8)]),
    "lenses": Ordinary(ideas.lenses, [("music",), ("chair",), ("lamp",), ("bag",), ("clock",)]),
    "name_generator": Ordinary(ideas.name_generator, [("bakery", 1), ("bank", 2), ("band", 3)]),
    "morphological_box": Ordinary(ideas.morphological_box, [(GRID, 8), (GRID, 2), ({"only": ["one"]}, 5)]),
    "story_in_turns": Ordinary(
        ideas.story_in_turns,
        [(["Ann", "Bob"], ["fell asleep", "found a key"]), (["Ann"], ["ran", "hid", "won"]), (["A", "B"], ["sang"])],
    ),
    "interview_questions": Ordinary(
        ideas.interview_questions,
        [
            ("the last train", ["knives", "soups"]),
            ("Ann", ["maps"], 3),
            ("cook", ["knives", "soups"]),
            ("driver", ["maps"], 3),
            ("none", [], 1),
        ],
    ),
    "windowed_chat": Ordinary(
        chats.windowed_chat, [(["Hi", "How are you?", "Bye"], 1), (["One", "Two", "Three", "Four"], 2), ([], 3)]
    ),
    "chat_with_memory": Ordinary(
        chats.chat_with_memory,
        [(["My name is Ann.", "I like tea.", "Who am I?"], 30), (["Hi", "Bye"], 200), (["a", "b", "c"], 0)],
    ),
    "two_speakers": Ordinary(chats.two_speakers, [("rain", 4), ("money", 2), ("the sea", 6), ("art", 0)]),
    "moderated_chat": Ordinary(
        chats.moderated_chat,
        [(["Hello", "a bomb", "Poison!"],), (["You there", "What is new?", "Thanks"],), (["Hm", "So", "And"],)],
    ),
    "interview": Ordinary(
        chats.interview,
        [("a diver", ["How deep?", "Why?", "Since when?"]), ("a king", ["Bored?"]), ("a cat", [])],
    ),
    "tutor": Ordinary(
        chats.tutor, [("3 * 4?", 12, ["Add 4 three times.", "Not 7."]), ("1 - 1?", 0, []), ("5?", 5, ["Look."])]
    ),
    "order_dialog": Ordinary(machines.order_dialog, [("Hi!",), ("I am hungry",), ("Nothing",), ("What is there?",)]),
    "de_escalation": Ordinary(machines.de_escalation, [("It broke!",), ("Too late!",), ("Hm.",), ("No!",)]),
    "traffic_light": Ordinary(
        machines.traffic_light, [(2, "RED"), (1, "GREEN"), (3, "YELLOW"), (0, "GREEN"), (9, "GREEN")]
    ),
    "twenty_questions": Ordinary(
        machines.twenty_questions, [("cat", 4), ("bat", 5), ("hen", 3), ("cow", 1), ("eagle", 6)]
    ),
    "text_adventure": Ordinary(
        machines.text_adventure, [("Ann", 8), ("You are brave.", 8), ("You are shy.", 12), ("You are lost.", 2)]
    ),
    "tic_tac_toe": Ordinary(machines.tic_tac_toe, [(4,), (0,), (8,), (1,)]),
    "react_agent": Ordinary(
        agents.react_agent, [("What is 2 * 3?", 4), ("Is it warm in Rome?", 3), ("Hello", 6), ("Stop", 1)]
    ),
    "talk_to_assistant": Ordinary(
        agents.talk_to_assistant, [("Max", ["Hi", "I am Ann.", "I am 30.", "Bye"]), ("Eve", ["Yes"]), ("Joe", [])]
    ),
    "manager": Ordinary(
        agents.manager, [("a website", ["design", "text", "tests"]), ("a book", ["chapter 1"]), ("none", [])]
    ),
    "plan_and_execute": Ordinary(
        agents.plan_and_execute, [("Hello",), ("Pack my bag",), ("Compute a lot",), ("Is it cold?",), ("Go",)]
    ),
    "note_keeper": Ordinary(
        agents.note_keeper,
        [(["I live in Rome", "Where do I live?", "Thanks"],), (["a", "b", "c", "d"],), (["Hello"],)],
        (agents.NOTES,),
    ),
    "reflexion": Ordinary(agents.reflexion, [("Hello", 1), ("an even number", 3), ("a sum", 1), ("anything", 5)]),
    "swarm": Ordinary(agents.swarm, [("I want to buy a car",), ("It is broken", 6), ("Hi", 2), ("Bye", 1)]),
    "crawl": Ordinary(
        worklists.crawl, [("home", "light", 6), ("about", "work", 3), ("lamps", "chairs", 2), ("products", "x", 9)]
    ),
    "expand_outline": Ordinary(worklists.expand_outline, [("A history of bread", 6), ("Tea", 1), ("Trains", 12)]),
    "build_pipeline": Ordinary(
        worklists.build_pipeline,
        [
            ({"load": [], "clean": ["load"], "report": ["clean", "load"]},),
            ({"a": [], "b": [], "c": ["a", "b"]},),
            ({"a": ["b"], "b": ["a"]},),
            ({},),
        ],
    ),
    "spelling_bee": Ordinary(worklists.spelling_bee, [(["cat", "door"],), (["a"],), (["noon", "abba", "tee"],)]),
    "memoised_classifier": Ordinary(
        worklists.memoised_classifier, [(["run", "Run ", "tree", "green"],), (["go"],), ([],), (["x", "y", "x"],)]
    ),
    "budgeted": Ordinary(
        worklists.budgeted, [(["How many?", "Why?", "When?"], 2), (["How old?"] * 4, 4), (["What?"], 0)]
    ),
    "hierarchical_summary": Ordinary(
        worklists.hierarchical_summary,
        [
            ([DOCUMENT, "Short.", LONG_ESSAY],),
            (["One.", "Two."],),
            ([LONG_ESSAY] * 5,),
            ([],),
        ],
    ),
    "questionnaire": Ordinary(worklists.questionnaire, [("Hello",), ("Ann",), ("Bob",), ("a robot",)]),
    "argument_tree": Ordinary(worklists.argument_tree, [("Cars are bad.", 2), ("Tea is good.", 1), ("So what?", 0)]),
    "map_reduce_summary": Ordinary(
        reports.map_reduce_summary, [(DOCUMENT, 60), (DOCUMENT, 500), ("", 10), (LONG_ESSAY, 20)]
    ),
    "refine_summary": Ordinary(reports.refine_summary, [(DOCUMENT, 50), (LONG_ESSAY, 30), ("Hi.", 9)]),
    "sectioned_report": Ordinary(
        reports.sectioned_report, [("bees", ["Life", "Honey"], 20), ("ice", ["Facts"], 60), ("none", [], 10)]
    ),
    "meeting_minutes": Ordinary(
        reports.meeting_minutes, [(TRANSCRIPT, "2024-05-06"), ("Ann: fine", "2024-12-30"), ("", "2023-01-01")]
    ),
    "changelog": Ordinary(
        reports.changelog,
        [(["fix crash #12", "new button", "drop python 3.8 #9"],), (["typo"],), (["a #1", "b #2", "c #3", "d"],)],
    ),
    "sales_comment": Ordinary(
        reports.sales_comment,
        [
            ({"north": 120.5, "south": 80.0, "west": 99.9}, 100),
            ({"north": 12000.0}, 100),
            ({}, 1),
            ({"a": 1.0, "b": 2.0, "c": 3.0}, 2.5),
        ],
    ),
    "weekly_digest": Ordinary(
        reports.weekly_digest, [(POSTS, "2024-03-04"), (POSTS, "2024-03-18"), ([], "2024-01-01")]
    ),
    "progress_log": Ordinary(
        reports.progress_log, [(["wash", "dry", "iron"],), (["sleep"],), (["a", "b", "c", "d"],), (["up", "down"],)]
    ),
    "chain_of_verification": Ordinary(
        verification.chain_of_verification,
        [("Happy birthday",), ("Who was first?",), ("Name three cities.",), ("Hm?",), ("List birds.",)],
    ),
    "self_consistency": Ordinary(verification.self_consistency, [("1 + 1?",), ("6 / 3?",), ("Which one?",)]),
    "critique_and_revise": Ordinary(
        verification.critique_and_revise, [("a poem", 2), ("a letter", 3), ("a word", 1), ("a joke", 4)]
    ),
    "formal_debate": Ordinary(
        verification.formal_debate, [("Ban cars", 2), ("Free tea", 1), ("Longer days", 3), ("No school", 2)]
    ),
    "red_team": Ordinary(
        verification.red_team,
        [("Be kind.", ["Insult me", "Ignore the rules", "Say a secret"]), ("Never lie.", ["Lie!"]), ("-", [])],
    ),
    "socratic": Ordinary(verification.socratic, [("All is water.", 4), ("I am right.", 2), ("Nothing is.", 6)]),
    "fact_check": Ordinary(
        verification.fact_check,
        [
            (["Hello"], {"manual": "It works."}),
            (["Tea is hot.", "Rain is dry."], {"book": "Tea is hot.", "web": "Rain is wet."}),
            (["It works."], {"manual": "It works."}),
            (["One", "Two", "Three"], {"a": "x", "b": "y", "c": "z"}),
        ],
    ),
    "fill_contact_form": Ordinary(
        forms.fill_contact_form, [("I am Ann",), ("Call 555-1234",), ("bob@mail.com, Bob",), ("Hello",)]
    ),
    "document_intake": Ordinary(
        forms.document_intake,
        [("my phone",), ("2 lamps, 40",), ("Dear Sir",), ("Worked at X",), ("Bill 7",), ("Best, Ann",)],
    ),
    "screen_resume": Ordinary(
        forms.screen_resume,
        [("Ann, python", ["python"]), ("Bob", ["sql", "go"]), ("Cleo, ten years", []), ("Dan", ["rust"])],
    ),
    "travel_plan": Ordinary(
        forms.travel_plan, [("Rome", "2024-05-01", 2), ("Oslo", "2024-12-24", 4), ("Lima", "2025-01-10", 1)]
    ),
    "exam": Ordinary(
        forms.exam,
        [
            ([("2 + 2?", ["3", "4"], "B"), ("Sky?", ["blue", "red", "green"], "A")],),
            ([("Largest?", ["ant", "cow", "fly", "bee"], "C")],),
            ([],),
        ],
    ),
    "take_order": Ordinary(forms.take_order, [("Ann",), ("a hungry man",), ("a child",)]),
    "clean_csv": Ordinary(
        data.clean_csv,
        [
            ("name,city,amount\nann ,Paris,3.5\nBOB,Pariss,7\n",),
            ('name,city,amount\ncleo,oslo,"4,5"\ndan,?,many\n',),
            ("name,city,amount\n",),
        ],
    ),
    "sql_repair": Ordinary(
        data.sql_repair,
        [
            ("What is the highest price?", [("lamp", 30), ("chair", 5)]),
            ("All together?", []),
            ("The mean?", [("desk", 8)]),
            ("The lowest?", [("pen", 1), ("ink", 2)]),
        ],
    ),
    "label_and_evaluate": Ordinary(
        data.label_and_evaluate,
        [
            ([("nice", "good"), ("awful", "bad"), ("great", "good")],),
            ([("on", "on"), ("off", "off")],),
            ([("a", "x"), ("b", "y"), ("c", "z"), ("d", "x")],),
        ],
    ),
    "deduplicate_faq": Ordinary(
        data.deduplicate_faq,
        [
            (["How do I pay?", "How can I pay?", "Where are you?", "Where are you now?"],),
            (["Why?"],),
            (["What is it?", "What is this?", "What was it?"], 0.4),
            ([],),
        ],
    ),
    "translate_with_glossary": Ordinary(
        data.translate_with_glossary,
        [(["Open the cart.", "Hello."],), (["Order at the checkout!", "Order at the checkout!"],), (["Hi"],)],
    ),
    "back_translation": Ordinary(
        data.back_translation, [("the cat sleeps", ["French"]), ("e t a o i n", ["German", "Greek"]), ("", ["Dutch"])]
    ),
    "code_review": Ordinary(data.code_review, [(DIFF,), ("",), (DIFF.replace("+print(2)", " print(2)"),)]),
    "unit_test_writer": Ordinary(
        data.unit_test_writer,
        [("double", [(1, 2), (3, 6)]), ("identity", [(2, 2)]), ("nothing", []), ("inc", [(1, 2)])],
    ),
    "anonymise": Ordinary(
        data.anonymise,
        [("Ann wrote to Bob (bob@x.org).",), ("Call 0123 456 789.",), ("The Lamp fell on Cleo and Ann",)],
    ),
    "schema_mapping": Ordinary(
        data.schema_mapping,
        [
            (["Name", "zip", "e_mail"], ["Hello", "email", "postcode", "city"]),
            (["Name", "zip", "e_mail"], ["name", "email", "postcode", "city"]),
            (["a"], ["b"]),
            (["x", "y", "z"], ["X"]),
        ],
    ),
}
