"""Scores: rubrics, pairwise comparisons, medians, letter grades."""

# Programs as users write them.
# pyright: basic, reportArgumentType=false, reportCallIssue=false

import statistics
from itertools import combinations, permutations

import lmc

RUBRIC = {
    "clarity": ("Is it easy to follow?", 0.5),
    "evidence": ("Does it give reasons?", 0.3),
    "style": ("Is the tone right?", 0.2),
}


def letter(score: float) -> str:
    for grade, least in (("A", 8.5), ("B", 7.0), ("C", 5.0), ("D", 3.0)):
        if score >= least:
            return grade
    return "F"


@lmc.jit
def rubric_grade(s, essay: str):
    """Grade each dimension in a branch, weigh the scores, comment on the weakest."""
    s += lmc.system("You grade essays from 0 to 10.")
    s += lmc.user(f"Essay:\n{essay}")
    scores = {}
    branches = s.fork(len(RUBRIC))
    for branch, (name, (question, _)) in zip(branches, RUBRIC.items()):
        branch += lmc.user(question)
        scores[name] = int(branch.gen("score", regex="10|[0-9]"))
    total = sum(scores[name] * weight for name, (_, weight) in RUBRIC.items())
    weakest = min(scores, key=scores.get)
    s += lmc.user(f"The essay got {total:.1f} points. Its weakest side is {weakest}. Comment on it.")
    comment = s.gen("comment", max_tokens=24, stop="\n").strip()
    return {
        "scores": scores,
        "mean": round(statistics.mean(scores.values()), 2),
        "grade": letter(total),
        "comment": comment,
    }


@lmc.jit
def robust_score(s, text: str, judges: int):
    """Several judges; outliers are dropped, and a large spread is settled by a referee."""
    scores = []
    for number in range(judges):
        judge = s.copy()
        judge += lmc.user(f"Judge {number + 1}: how good is this, from 1 to 9?\n{text}")
        scores.append(judge.gen("score", dtype=int, max_tokens=2))
    middle = statistics.median(scores)
    kept = [score for score in scores if abs(score - middle) <= 3]
    spread = statistics.pstdev(kept) if len(kept) > 1 else 0.0
    if spread > 1.5:
        s += lmc.user(f"{text}\nThe judges gave {', '.join(map(str, sorted(kept)))}. What is fair, from 1 to 9?")
        return s.gen("referee", dtype=int, max_tokens=2), "referee"
    return round(statistics.fmean(kept), 1), f"{len(kept)} of {len(scores)} judges"


@lmc.jit
def compare_both_orders(s, question: str, first: str, second: str):
    """A pairwise comparison that counts only if it does not depend on the order."""
    verdicts = []
    for left, right in permutations([("first", first), ("second", second)]):
        judge = s.copy()
        judge += lmc.user(f"{question}\nA: {left[1]}\nB: {right[1]}\nWhich is better?")
        choice = judge.select("better", ["A", "B"])
        verdicts.append(left[0] if choice == "A" else right[0])
    if len(set(verdicts)) == 1:
        return verdicts[0]
    s += lmc.user(f"{question}\nOne answer: {first}\nAnother answer: {second}\nSay in a sentence how they differ.")
    difference = s.gen("difference", max_tokens=16, stop=".")
    s += lmc.user("So which is better?")
    return s.select("final", ["first", "second", "tie"]), difference.strip()


@lmc.jit
def league_table(s, criterion: str, entries: list[str]):
    """Everyone against everyone: three points for a win, one for a draw."""
    points = dict.fromkeys(entries, 0)
    for one, other in combinations(entries, 2):
        match = s.copy()
        match += f"By {criterion}: {one} or {other}?"
        result = match.select("result", [one, other, "draw"])
        if result == "draw":
            points[one] += 1
            points[other] += 1
        else:
            points[result] += 3
    table = sorted(points.items(), key=lambda item: (-item[1], item[0]))
    lines = [f"{rank}. {name:<10}{score:>3}" for rank, (name, score) in enumerate(table, start=1)]
    s += lmc.user("Comment on this table:\n" + "\n".join(lines))
    s.gen("comment", max_tokens=16, stop="\n")
    return table[0][0], lines


@lmc.jit
def knockout(s, players: list[str]):
    """Winners of pairs meet until one is left; with an odd number the last one rests."""
    rounds = 0
    bracket = []
    while len(players) > 1:
        rounds += 1
        winners = []
        for left, right in zip(players[::2], players[1::2]):
            game = s.copy()
            game += lmc.user(f"Round {rounds}: {left} against {right}. Who wins?")
            winner = game.select("winner", [left, right])
            bracket.append(f"{left}-{right}: {winner}")
            winners.append(winner)
        if len(players) % 2:
            winners.append(players[-1])
        players = winners
    champion = players[0]
    s += lmc.user(f"Congratulate {champion}.")
    s.gen("speech", max_tokens=12, stop=".")
    return champion, rounds, bracket


@lmc.jit
def elo_ratings(s, players: list[str], games: int):
    """Ratings after some games, each between the two whose ratings are closest."""
    ratings = {player: 1000.0 for player in players}
    for number in range(games):
        ordered = sorted(ratings, key=lambda player: (ratings[player], player))
        pairs = list(zip(ordered, ordered[1:]))
        left, right = pairs[number % len(pairs)]
        game = s.copy()
        game += f"Game {number + 1}: {left} ({ratings[left]:.0f}) against {right} ({ratings[right]:.0f}). Winner:"
        won = 1.0 if game.select("winner", [left, right]) == left else 0.0
        expected = 1 / (1 + 10 ** ((ratings[right] - ratings[left]) / 400))
        ratings[left] += 32 * (won - expected)
        ratings[right] -= 32 * (won - expected)
    return {player: round(rating, 1) for player, rating in sorted(ratings.items(), key=lambda item: -item[1])}
