"""Nouns in messages: with their article, and with a count."""

from __future__ import annotations

_VOWELS = "aeiou"
_SPOKEN_AS_CONSONANTS = ("eu", "one", "uni", "use", "utf", "uu")
"""Beginnings of words that are spelled with a vowel and spoken with a consonant: a union, a user, a UUID."""


def with_article(noun: str) -> str:
    """Return ``noun`` behind "a" or "an": ``an int``, ``a list``."""
    word = noun.lstrip("'\"`_<!").lower()
    is_vowel = word.startswith(tuple(_VOWELS)) and not word.startswith(_SPOKEN_AS_CONSONANTS)
    return f"{'an' if is_vowel else 'a'} {noun}"


def with_count(count: int, noun: str, plural: str | None = None) -> str:
    """Return ``count`` with ``noun`` in the right number: ``1 row``, ``2,000 rows``."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"
