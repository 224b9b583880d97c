"""Searching over what a model proposes: beams, heaps, stacks, trees."""

# Programs as users write them.
# pyright: basic

import heapq
import math
from dataclasses import dataclass, field
from itertools import count

import lmc


@lmc.jit
def beam_search(s, start: str, width: int, depth: int):
    """Keep the best few beginnings of a story, judged by the model."""
    beams = [(0, start)]
    for level in range(depth):
        candidates = []
        for score, text in beams:
            writer = s.copy()
            writer += f"Story so far: {text}\nNext words:"
            for continuation in writer.gen("next", n=2, max_tokens=8, stop="\n", temperature=1.0):
                story = f"{text} {continuation.strip()}"
                judge = s.copy()
                judge += lmc.user(f"Rate from 0 to 9: {story}")
                points = judge.gen("points", dtype=int, max_tokens=2)
                candidates.append((score + points, story))
        beams = heapq.nlargest(width, candidates)
        if beams[0][0] >= 9 * (level + 1):
            break
    return [{"score": score, "story": story} for score, story in beams]


@lmc.jit
def best_first(s, goal: str, budget: int):
    """Expand the most promising plan first, until one is said to be complete or the budget is used up."""
    order = count()
    frontier = [(0, next(order), [])]
    expanded = 0
    while frontier and expanded < budget:
        cost, _, plan = heapq.heappop(frontier)
        expanded += 1
        planner = s.copy()
        planner += lmc.system("You plan in small steps.")
        planner += lmc.user(f"Goal: {goal}\nSteps so far: {'; '.join(plan) or 'none'}")
        if plan and planner.select("complete", ["yes", "no"]) == "yes":
            return {"plan": plan, "cost": cost, "expanded": expanded}
        for option in range(2):
            branch = planner.copy()
            branch += lmc.user(f"Propose option {option + 1} for the next step.")
            step = branch.gen("step", max_tokens=6, stop=["\n", "."]).strip()
            if not step or step in plan:
                continue
            branch += lmc.user("What does this step cost, from 1 to 5?")
            price = int(branch.gen("price", regex="[1-5]"))
            heapq.heappush(frontier, (cost + price, next(order), [*plan, step]))
    return {"plan": None, "cost": None, "expanded": expanded}


@lmc.jit
def backtracking(s, riddle: str, slots: int):
    """Fill slots one after the other; go back a step when the model objects."""
    stack = []
    tried = set()
    steps = 0
    while len(stack) < slots and steps < 10:
        steps += 1
        prefix = " ".join(stack)
        solver = s.copy()
        solver += f"Riddle: {riddle}\nTried: {len(tried)}\nSolution: {prefix}"
        word = solver.gen("word", choices=["red", "blue", "green", "black"])
        attempt = (*stack, word)
        if attempt in tried:
            if not stack:
                break
            stack.pop()
            continue
        tried.add(attempt)
        solver += "\nDoes this still fit?"
        if solver.gen("fits", dtype=bool):
            stack.append(word)
    solved = len(stack) == slots
    if solved:
        s += f"The solution of {riddle!r} is {' '.join(stack)}. Explain:"
        s.gen("why", max_tokens=12, stop="\n")
    return stack, solved, steps


@dataclass
class Node:
    text: str
    parent: "Node | None" = None
    children: list["Node"] = field(default_factory=list)
    visits: int = 0
    value: float = 0.0

    def uct(self, exploration: float = 1.4) -> float:
        if self.visits == 0 or self.parent is None:
            return math.inf
        return self.value / self.visits + exploration * math.sqrt(math.log(self.parent.visits) / self.visits)


def select_leaf(node: Node) -> Node:
    while node.children:
        node = max(node.children, key=Node.uct)
    return node


def backpropagate(node: Node | None, reward: float) -> None:
    while node is not None:
        node.visits += 1
        node.value += reward
        node = node.parent


@lmc.jit
def monte_carlo(s, question: str, rollouts: int):
    """Monte Carlo tree search over drafts of an answer."""
    root = Node("")
    for _ in range(rollouts):
        leaf = select_leaf(root)
        if leaf.visits > 0 or leaf is root:
            for number in range(2):
                writer = s.copy()
                writer += lmc.user(f"{question}\nDraft: {leaf.text}\nImprove it, variant {number}.")
                leaf.children.append(Node(writer.gen("draft", max_tokens=10, stop="\n").strip(), leaf))
            leaf = leaf.children[0]
        critic = s.copy()
        critic += lmc.user(f"Question: {question}\nAnswer: {leaf.text}\nScore from 0 to 10.")
        reward = int(critic.gen("score", regex="10|[0-9]")) / 10
        backpropagate(leaf, reward)
    best = max(root.children, key=lambda child: child.visits)
    return best.text, best.visits, round(best.value / best.visits, 2)


@dataclass(order=True)
class Move:
    score: int
    name: str = field(compare=False)
    replies: list["Move"] = field(default_factory=list, compare=False)


@lmc.jit
def minimax(s, position: str, moves: list[str]):
    """Look two plies ahead and choose the move whose best answer is the worst for the other side."""

    def evaluate(line: str) -> int:
        judge = s.copy()
        judge += lmc.user(f"Position: {position}\nLine: {line}\nEvaluate from 0 to 20.")
        return int(judge.gen("value", regex="1?[0-9]|20"))

    options = []
    for name in moves:
        move = Move(0, name)
        opponent = s.copy()
        opponent += lmc.user(f"Position: {position}\nThey play {name}. Reply with one of {', '.join(moves)}.")
        for reply in {opponent.select("first", moves), opponent.select("second", moves)}:
            if reply != name:
                move.replies.append(Move(evaluate(f"{name} {reply}"), reply))
        move.score = min((reply.score for reply in move.replies), default=evaluate(name))
        options.append(move)
    best = max(options)
    s += f"Best move: {best.name} ({best.score})"
    return best.name, best.score, [len(move.replies) for move in options]
