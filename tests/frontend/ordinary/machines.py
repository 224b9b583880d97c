"""State machines: orders, wizards, games."""

# Programs as users write them.
# pyright: basic

from enum import Enum, IntEnum, auto

import lmc


class Step(Enum):
    GREETING = "greeting"
    ITEM = "item"
    QUANTITY = "quantity"
    CONFIRM = "confirm"
    DONE = "done"
    CANCELLED = "cancelled"


@lmc.jit
def order_dialog(s, opening: str):
    """An ordering dialog as a state machine with a way back and a way out."""
    step = Step.GREETING
    order = {}
    visited = []
    while step not in (Step.DONE, Step.CANCELLED) and len(visited) < 10:
        visited.append(step.value)
        if step is Step.GREETING:
            s += lmc.user(opening)
            step = Step.ITEM if s.select("wants", ["order", "leave"]) == "order" else Step.CANCELLED
        elif step is Step.ITEM:
            s += lmc.user("What would you like?")
            order["item"] = s.gen("item", choices=["pizza", "pasta", "salad"])
            step = Step.QUANTITY
        elif step is Step.QUANTITY:
            s += lmc.user(f"How many {order['item']}s?")
            order["quantity"] = int(s.gen("quantity", regex="[0-5]"))
            step = Step.CONFIRM if order["quantity"] > 0 else Step.ITEM
        elif step is Step.CONFIRM:
            s += lmc.user(f"{order['quantity']} x {order['item']}, right?")
            answer = s.select("confirm", ["yes", "change", "cancel"])
            step = {"yes": Step.DONE, "change": Step.ITEM, "cancel": Step.CANCELLED}[answer]
    return step.name, order, visited


class Level(IntEnum):
    CALM = 0
    TENSE = 1
    ANGRY = 2


@lmc.jit
def de_escalation(s, complaint: str):
    """The mood of a customer goes up and down a scale; an agent takes over at the top of it."""
    level = Level.TENSE
    trail = [level.name]
    s += lmc.system("You calm customers down.")
    s += lmc.user(complaint)
    for _ in range(4):
        s.gen("reply", max_tokens=10, stop="\n")
        s += lmc.user("How do they feel now?")
        mood = s.select("mood", ["better", "same", "worse"])
        if mood == "better":
            level = Level(max(level - 1, Level.CALM))
        elif mood == "worse":
            level = Level(min(level + 1, Level.ANGRY))
        trail.append(level.name)
        if level == Level.CALM or level >= Level.ANGRY:
            break
    return {"end": level, "trail": " > ".join(trail), "handed_over": level is Level.ANGRY}


class Signal(Enum):
    RED = auto()
    GREEN = auto()
    YELLOW = auto()

    def following(self) -> "Signal":
        members = list(Signal)
        return members[(members.index(self) + 1) % len(members)]


@lmc.jit
def traffic_light(s, cars: int, start: str):
    """A simulation in which the model is the driver."""
    signal = Signal[start]
    passed, waited, fined = 0, 0, 0
    for tick in range(5):
        driver = s.copy()
        driver += f"Tick {tick}: the light is {signal.name.lower()}, {cars - passed} cars wait. You"
        action = driver.gen("action", choices=[" go", " stop"]).strip()
        match (signal, action):
            case (Signal.GREEN, "go"):
                passed += 1
            case (Signal.RED, "go"):
                fined += 1
            case (_, "stop"):
                waited += 1
        if passed >= cars:
            break
        signal = signal.following()
    return passed, waited, fined, signal.name


@lmc.jit
def twenty_questions(s, secret: str, limit: int):
    """The guesser narrows the candidates down with yes/no questions."""
    animals = {
        "cat": {"legs": 4, "flies": False},
        "eagle": {"legs": 2, "flies": True},
        "bat": {"legs": 2, "flies": True},
        "cow": {"legs": 4, "flies": False},
        "hen": {"legs": 2, "flies": False},
    }
    facts = animals[secret]
    candidates = sorted(animals)
    asked = 0
    while asked < limit:
        asked += 1
        s += lmc.user(f"Candidates: {', '.join(candidates)}. Ask or guess?")
        move = s.gen("move", choices=["does it fly?", "has it four legs?", "guess"])
        if move == "does it fly?":
            candidates = [name for name in candidates if animals[name]["flies"] == facts["flies"]]
        elif move == "has it four legs?":
            candidates = [name for name in candidates if (animals[name]["legs"] == 4) == (facts["legs"] == 4)]
        else:
            guess = s.gen("guess", choices=candidates)
            if guess == secret:
                return f"found {secret} with {asked} questions"
            candidates.remove(guess)
        if len(candidates) == 1:
            return f"only {candidates[0]} is left after {asked} questions"
    return f"not found among {len(candidates)}"


@lmc.jit
def text_adventure(s, seed_text: str, moves: int):
    """Rooms, an inventory and a score; the model chooses what to do."""
    rooms = {
        "hall": {"north": "library", "east": "kitchen"},
        "library": {"south": "hall"},
        "kitchen": {"west": "hall", "down": "cellar"},
        "cellar": {"up": "kitchen"},
    }
    items = {"library": ["book"], "cellar": ["lamp", "coin"]}
    here, inventory, score = "hall", [], 0
    s += lmc.system(seed_text)
    for _ in range(moves):
        exits = rooms[here]
        lying = items.get(here, [])
        options = [f"go {direction}" for direction in exits] + [f"take {item}" for item in lying]
        s += lmc.user(f"You are in the {here}. Options: {', '.join(options)}.")
        verb, _, thing = s.select("choice", options).partition(" ")
        if verb == "go":
            here = exits[thing]
        else:
            lying.remove(thing)
            inventory.append(thing)
            score += 10 if thing == "coin" else 1
        if score >= 10:
            return "won", here, inventory
    return "lost", here, inventory


def board_text(cells: list[str]) -> str:
    rows = [
        "|".join(cell or str(index + start) for index, cell in enumerate(cells[start : start + 3]))
        for start in (0, 3, 6)
    ]
    return "\n-----\n".join(rows)


LINES = [(0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6)]


def winner(cells: list[str]) -> str | None:
    for a, b, c in LINES:
        if cells[a] and cells[a] == cells[b] == cells[c]:
            return cells[a]
    return None


@lmc.jit
def tic_tac_toe(s, opening: int):
    """Two copies of the model play; illegal moves lose."""
    cells = [""] * 9
    cells[opening] = "x"
    player = "o"
    while "" in cells:
        turn = s.copy()
        turn += lmc.user(f"You play {player}.\n{board_text(cells)}\nYour field?")
        move = int(turn.gen("move", regex="[0-8]"))
        if cells[move]:
            free = [index for index, cell in enumerate(cells) if not cell]
            turn += lmc.user(f"{move} is taken. Free: {free}")
            move = int(turn.gen("move", regex="[0-8]"))
            if cells[move]:
                return f"{player} loses by an illegal move", cells
        cells[move] = player
        if winner(cells):
            return f"{player} wins", cells
        player = "x" if player == "o" else "o"
    return "draw", cells
