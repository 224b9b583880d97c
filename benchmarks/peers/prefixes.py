"""Prefixes that prompts have in common; standard library only."""


class Prefixes:
    """Which prefixes were there before: each is one number."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], int] = {}

    def add(self, tokens: list[int]) -> tuple[int, list[int]]:
        """Count the positions whose prefix is new; and the numbers of all of them."""
        before, place, places = len(self._known), 0, list[int]()
        for token in tokens:
            place = self._known.setdefault((place, token), len(self._known) + 1)
            places.append(place)
        return len(self._known) - before, places
