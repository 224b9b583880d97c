"""What a stand-in model says of three letters, with and without a constraint on them."""

import numpy as np
import torch

from lmc.ir.engine.toy import toy_tokenizer

VOCABULARY = 300
LETTERS = tuple(toy_tokenizer().encode(letter)[0] for letter in "abc")
POISON = toy_tokenizer().encode("z")[0]


def logits_after(prefix: tuple[int, ...]) -> torch.Tensor:
    """What the stand-in model says after a prefix."""
    logits = torch.zeros(VOCABULARY)
    for index, letter in enumerate(LETTERS):
        logits[letter] = 5.0 + (hash((*prefix, index)) % 1000) / 1000
    return logits


def expected_generation(prompt: tuple[int, ...], count: int) -> tuple[int, ...]:
    tokens = list(prompt)
    for _ in range(count):
        tokens.append(int(logits_after(tuple(tokens)).argmax()))
    return tuple(tokens[len(prompt) :])


class Letters:
    """A constraint on `length` letters: which ones follow is a hash of those before, so often there is only one.

    Text that has to follow is given as it is, or, with `guesses`, a text that only may follow: a bad draft. It fits
    `TokenConstraint`.
    """

    def __init__(self, seed: int, length: int, *, guesses: bool) -> None:
        self.seed = seed
        self.length = length
        self.guesses = guesses
        self.digest = f"{seed} {length} {guesses}"

    def start(self) -> "LettersState":
        return LettersState(self, ())

    def matches(self, output: str | bytes) -> bool:
        letters = toy_tokenizer().encode(output if isinstance(output, str) else output.decode())
        state = self.start()
        for letter in letters:
            if letter not in state.letters:
                return False
            state = state.advance(letter)
        return state.accepting


class LettersState:
    def __init__(self, owner: Letters, said: tuple[int, ...]) -> None:
        self.owner = owner
        self.said = said
        self.complete = len(said) == owner.length
        number = hash((owner.seed, *said)) // 7
        self.accepting = self.complete or number % 10 == 0
        first, count = number % 11 % 3, 2 if number % 6 == 0 or not said else 1
        self.letters = () if self.complete else tuple(LETTERS[(first + other) % 3] for other in range(count))

    def mask(self) -> np.ndarray:
        mask = np.zeros(9, np.uint32)
        for token in (*self.letters, *(toy_tokenizer().eos_ids if self.accepting else ())):
            mask[token // 32] |= np.uint32(1 << token % 32)
        return mask

    def advance(self, token_id: int) -> "LettersState":
        assert token_id in self.letters
        return LettersState(self.owner, (*self.said, token_id))

    def forced(self) -> list[int]:
        state, found = self, list[int]()
        while state.letters and (self.owner.guesses or (len(state.letters) == 1 and not state.accepting)):
            found.append(state.letters[-1])
            state = state.advance(found[-1])
        return found


def expected_constrained(prompt: tuple[int, ...], constraint: Letters, room: int) -> tuple[tuple[int, ...], bool]:
    """What masked decoding says, and whether that is a whole output."""
    state = constraint.start()
    while not state.complete and len(state.said) < room:
        logits = logits_after((*prompt, *state.said))
        state = state.advance(max(state.letters, key=lambda letter: (float(logits[letter]), -letter)))
    return state.said, state.accepting
