"""Short essays whose qualities can be read off their wording."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from training import words
from training.document import Split
from training.phrasing import Phrasings

if TYPE_CHECKING:
    from random import Random


@dataclass(frozen=True)
class Dimension:
    """A quality of an essay: sentences that show it, sentences that lack it, and the judgements."""

    name: str
    good: Phrasings
    poor: Phrasings
    praise: str
    blame: str

    def judgement(self, *, good: bool) -> str:
        """Return the one-line judgement."""
        return f"The {self.name} is good: {self.praise}." if good else f"The {self.name} is poor: {self.blame}."


DIMENSIONS = (
    Dimension(
        "clarity",
        Phrasings(
            (
                "In plain words, {topic} matter to people.",
                "Put simply, we need {topic}.",
                "The main point about {topic} is plain.",
                "To be clear, {topic} help us.",
                "It is simple to say what {topic} do.",
                "The idea is clear and simple.",
            ),
            ("In plain and simple words, we need {topic}.", "To be clear, the point about {topic} is simple."),
        ),
        Phrasings(
            (
                "It is sort of hard to say, somehow, what this is.",
                "Things like that are kind of whatever.",
                "Somehow {topic} are a thing, or something.",
                "Well, it is sort of about stuff, I guess.",
                "Whatever it is, it kind of is, I guess.",
                "One might somehow mean something or other.",
            ),
            ("I guess {topic} are sort of something.", "It is kind of a thing, somehow, or whatever."),
        ),
        "the wording is plain",
        "the wording is vague",
    ),
    Dimension(
        "evidence",
        Phrasings(
            (
                "A study of {number} towns shows it.",
                "In a survey, {number} of 100 people agreed.",
                "Data from {year} support this.",
                "Researchers counted {number} cases in {year}.",
                "According to a report from {year}, the effect is large.",
                "Tests in {number} schools found the same.",
            ),
            ("According to a survey of {number} towns, this is so.", "A report from {year} shows {number} cases."),
        ),
        Phrasings(
            (
                "Everybody just knows this.",
                "I feel it must be true.",
                "It is true because I believe it.",
                "No proof is needed, everyone knows.",
                "My gut says so.",
                "Surely nobody would doubt it.",
            ),
            ("I just feel that everybody knows it.", "Surely it is true, my gut knows."),
        ),
        "it gives numbers and sources",
        "it gives no proof",
    ),
    Dimension(
        "structure",
        Phrasings(
            (
                "First, look at {topic} today. Second, look at the past. Finally, compare the two.",
                "To begin, here is the question. Next, here are the reasons. In conclusion, they agree.",
                "First comes the problem. Then comes the cause. Last comes the answer.",
                "The first part names the aim, the second part explains it, the final part sums up.",
            ),
            (
                "First, name the problem. Next, look at the cause. In conclusion, sum up.",
                "To begin, look at {topic}. Second, here are the reasons. Finally, sum up.",
            ),
        ),
        Phrasings(
            (
                "Anyway, back to before. Oh, and another thing.",
                "By the way, I forgot something. Where was I?",
                "Oh, I should have said this earlier. Anyway.",
                "But wait, that was for later. Back to the middle.",
            ),
            ("Oh, by the way, where was I? Anyway.", "But wait, I forgot, back to another thing."),
        ),
        "the parts follow in order",
        "the parts jump about",
    ),
    Dimension(
        "tone",
        Phrasings(
            (
                "Those who disagree have good reasons too.",
                "I respect the other side.",
                "Both sides deserve a fair hearing.",
                "With thanks to my critics, I see it so.",
                "Fair people can differ on this.",
            ),
            ("I respect those who disagree.", "Both sides are fair and deserve thanks."),
        ),
        Phrasings(
            (
                "Only fools disagree.",
                "Anyone who doubts this is an idiot.",
                "Shut up if you think otherwise.",
                "My critics are stupid and lazy.",
                "Those people make me sick.",
            ),
            ("Only an idiot would disagree.", "Those lazy fools should shut up."),
        ),
        "it is fair to others",
        "it is rude to others",
    ),
    Dimension(
        "grammar",
        Phrasings(
            (
                "They are useful and they are loved.",
                "We do not want to lose them.",
                "He has seen them, and she has too.",
                "They were here before we were.",
            ),
            ("We do want them, and they are here.", "She has seen that they were loved."),
        ),
        Phrasings(
            (
                "They is useful and they is loved.",
                "We does not wants to lose them.",
                "He have saw them, and she have too.",
                "They was here before we was.",
            ),
            ("We does wants them, and they is here.", "She have saw that they was loved."),
        ),
        "the sentences are correct",
        "the sentences have mistakes",
    ),
)

_ON_TOPIC = Phrasings(
    (
        "Many people care about {topic}.",
        "I want to write about {topic}.",
        "There is a lot to say about {topic}.",
        "This text is about {topic}.",
        "Think of {topic} for a moment.",
        "Life without {topic} would be different.",
        "I have always liked {topic}.",
    ),
    ("Many people like to think of {topic}.", "I want to say a lot about {topic}."),
)


@dataclass(frozen=True)
class Essay:
    """An essay with its true qualities by dimension name."""

    text: str
    on_topic: bool
    good: dict[str, bool]


def write(rng: Random, split: Split) -> Essay:
    """Write an essay of a topic line and five to nine sentences."""
    topic, other = words.distinct(2, lambda: _topic(rng, split))
    on_topic = rng.random() < 0.5
    subject = topic if on_topic else other
    bias = rng.choice((0.15, 0.5, 0.85))
    good = {dimension.name: rng.random() < bias for dimension in DIMENSIONS}
    parts = [_ON_TOPIC.pick(rng, split) for _ in range(rng.randrange(1, 3))]
    for dimension in DIMENSIONS:
        pool = dimension.good if good[dimension.name] else dimension.poor
        parts += [pool.pick(rng, split) for _ in range(1 if rng.random() < 0.7 else 2)]
    opening, rest = parts[0], list(dict.fromkeys(parts[1:]))
    rng.shuffle(rest)
    body = " ".join(
        part.format(topic=subject, number=rng.randrange(11, 99), year=words.year(rng)) for part in [opening, *rest]
    )
    head = rng.choice(("Topic: {topic}\n", "Topic: {topic}\n", "Title: {topic}\n", "On {topic}. ")).format(topic=topic)
    return Essay(head + body, on_topic, good)


def _topic(rng: Random, split: Split) -> str:
    if rng.random() < 0.7:
        return words.pick(rng, words.TOPICS, split)
    return words.made_word(rng, split) + "s"
