"""Brainstorming: lists of ideas without repetitions, names, quizzes, seeds."""

# Programs as users write them.
# pyright: basic

import random
import re
from itertools import product, zip_longest

import lmc

LENSES = ("substitute", "combine", "adapt", "reverse")


def ideas_in(text: str) -> list[str]:
    """One idea per line, without numbers and marks."""
    found = []
    for line in text.splitlines():
        idea = re.sub(r"^[\s\d.,*-]+", "", line).strip(" .,").lower()
        if len(idea) > 2:
            found.append(idea)
    return found


@lmc.jit
def brainstorm(s, topic: str, wanted: int):
    """Ask for more until there are enough different ideas, or nothing new comes."""
    ideas: set[str] = set()
    dry_rounds = 0
    round_number = 0
    while len(ideas) < wanted and dry_rounds < 2:
        round_number += 1
        prompt = f"Round {round_number}. Ideas for {topic}, one per line."
        if ideas:
            prompt += " Not again: " + ", ".join(sorted(ideas))
        s += lmc.user(prompt)
        fresh = set(ideas_in(s.gen("ideas", max_tokens=30))) - ideas
        if not fresh:
            dry_rounds += 1
            continue
        dry_rounds = 0
        ideas |= fresh
    best = sorted(ideas, key=lambda idea: (-len(idea), idea))[:wanted]
    return best, round_number


@lmc.jit
def lenses(s, product_name: str):
    """Look at a product through several lenses and keep what several lenses agree on."""
    s += lmc.system("You invent things.")
    s += lmc.user(f"Product: {product_name}")
    views = s.fork(len(LENSES))
    words = []
    for view, lens in zip(views, LENSES):
        view += lmc.user(f"{lens.capitalize()} something. Materials?")
        first = view.gen("first", choices=["wood", "steel", "paper", "glass"])
        second = view.gen("second", choices=["wood", "steel", "paper", "glass"])
        words.append({first, second})
    common = set.intersection(*words)
    anywhere = set().union(*words)
    if common:
        s += lmc.user(f"All agree on {', '.join(sorted(common))}. Name the product.")
    elif len(anywhere) == 4:
        return {"name": None, "materials": sorted(anywhere)}
    else:
        s += lmc.user(f"Choose among {' and '.join(sorted(anywhere))}. Name the product.")
    name = s.gen("name", max_tokens=6, stop=["\n", ",", "."]).strip().title()
    return {"name": name or "Nameless", "materials": sorted(common or anywhere)}


@lmc.jit
def name_generator(s, business: str, seed: int):
    """Random syllables inspire the model; names that are taken or hard to say are thrown away."""
    rng = random.Random(seed)
    syllables = ["zen", "ko", "lu", "mar", "ti", "vo"]
    taken = {"Zenko", "Luma", "Voti"}
    accepted = []
    for _ in range(4):
        inspiration = "".join(rng.sample(syllables, 2)).capitalize()
        s += lmc.user(f"A name for a {business}, like {inspiration}.")
        ending = s.gen("ending", regex="[aeiou][nrst]?")
        candidate = inspiration + ending
        if inspiration in taken or candidate in accepted:
            continue
        s += lmc.user(f"Is {candidate} easy to say?")
        if s.select("easy", ["yes", "no"]) == "yes":
            accepted.append(candidate)
    rng.shuffle(accepted)
    return accepted or ["Acme"]


@lmc.jit
def morphological_box(s, parameters: dict[str, list[str]], limit: int):
    """Judge combinations of parameters; the first that is called brilliant ends the search."""
    good = []
    for number, combination in enumerate(product(*parameters.values())):
        if number >= limit:
            break
        description = ", ".join(f"{key}={value}" for key, value in zip(parameters, combination))
        judge = s.copy()
        judge += lmc.user(f"Combination {description}: how good?")
        verdict = judge.select("verdict", ["useless", "fine", "brilliant"])
        if verdict == "brilliant":
            return [dict(zip(parameters, combination))]
        if verdict == "fine":
            good.append(dict(zip(parameters, combination)))
    return good


@lmc.jit
def story_in_turns(s, heroes: list[str], twists: list[str]):
    """Heroes and twists take turns; who has none gets one from the model."""
    s += "Once upon a time"
    for chapter, (hero, twist) in enumerate(zip_longest(heroes, twists), start=1):
        if hero is None:
            s += f" a stranger named"
            hero = s.gen("stranger", regex="[A-Z][a-z]{2,5}")
        else:
            s += f" {hero}"
        s += f" (chapter {chapter})"
        if twist:
            s += f" {twist} and"
        s.gen("part", max_tokens=12, stop=[".", "\n"])
        s += "."
    text = s.text()
    return text, text.count(".")


def clean_question(text: str) -> str:
    question = text.strip().rstrip(".?, ")
    return question[:1].upper() + question[1:] + "?" if question else ""


@lmc.jit
def interview_questions(s, role: str, skills: list[str], per_skill: int = 2):
    """Questions for each skill, from easy to hard, without repetitions, with one bonus question at the end."""
    guide: dict[str, list[str]] = {}
    asked = set()
    for skill in skills:
        interviewer = s.copy()
        interviewer += lmc.system(f"You interview for: {role}.")
        for level, difficulty in zip(range(per_skill), ("easy", "medium", "hard")):
            interviewer += lmc.user(f"Ask an {difficulty} question about {skill}.")
            question = clean_question(interviewer.gen("question", max_tokens=14, stop=["?", "\n"]))
            if not question or question in asked:
                continue
            asked.add(question)
            guide.setdefault(skill, []).append(f"L{level + 1}: {question}")
    missing = [skill for skill in skills if skill not in guide]
    if missing:
        s += lmc.user(f"Ask one question about {' and '.join(missing)}.")
        guide["bonus"] = [clean_question(s.gen("bonus", max_tokens=14, stop="\n"))]
    return guide
