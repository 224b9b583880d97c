"""Words and names for the generators, each list cut into a training and a held-out part."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from training.document import Split

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

HELD_OUT_SHARE = 6


def split_words(text: str) -> list[str]:
    """Return the words of a text, so that long lists read as prose."""
    return text.split()


_ONSETS = split_words("b br c ch cl d dr f fl g gl gr h j k kr l m n p pl qu r s sh sk st t th tr v w y z")
_VOWELS = split_words("a e i o u a e i o ai ea ia io ou")
_CODAS = ["", "", "", *split_words("l n r s m t x nd rn lt sk th")]
_CITY_ENDINGS = split_words("ville ton burg ford mouth field port stad haven dale wick by")
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_ACCENTED = "éüñöàçøß"

FIRST_NAMES = split_words(
    "Ada Alan Alice Amir Ana Anna Arlo Ben Bea Bob Carla Carl Chen Clara Cora Dan Dana David Dora Eli Ella Emil "
    "Emma Erik Eva Farah Felix Finn Fred Gina Grace Hana Hugo Ida Ines Iris Ivan Jack Jana Jane Joel John Jonas "
    "Julia Kai Karl Kate Kira Lara Lena Leo Lily Lina Lisa Liam Lucy Luis Maja Marco Maria Mark Marta Max Maya "
    "Mia Mila Mira Nadia Nina Noah Nora Olaf Olga Omar Oscar Otto Paul Pedro Petra Peter Rafa Rosa Rita Ruth Sam "
    "Sara Simon Sofia Sven Tara Theo Tim Tom Uma Vera Viktor Wanda Will Yara Yusuf Zara Zoe"
)
JOBS = split_words(
    "baker pilot nurse teacher farmer lawyer painter singer doctor driver plumber potter tailor waiter writer "
    "actor banker barber builder butcher carpenter chemist clerk coach cook dancer dentist editor engineer fisher "
    "florist gardener guard guide hunter jeweller judge librarian mason mechanic miner musician officer "
    "photographer physicist poet printer sailor scientist sculptor shepherd smith soldier surgeon translator vet "
    "weaver welder zookeeper"
)
COLORS = split_words(
    "red blue green yellow purple orange pink brown black white grey teal gold silver violet crimson amber ivory "
    "navy olive coral indigo lilac maroon mint beige turquoise scarlet"
)
ANIMALS = split_words(
    "cat dog horse goat parrot rabbit turtle snake mouse hamster canary pony duck goose sheep fox owl ferret "
    "lizard frog crow pig cow donkey hen swan spider tortoise llama hedgehog"
)
FOODS = split_words(
    "bread soup rice pasta cheese apples plums pizza salad noodles beans fish cake honey pears curry stew "
    "pancakes figs olives grapes nuts carrots dumplings waffles lentils peaches cherries"
)
INSTRUMENTS = [
    "piano",
    "violin",
    "flute",
    "guitar",
    "drums",
    "cello",
    "harp",
    "trumpet",
    "oboe",
    "banjo",
    "clarinet",
    "organ",
    "lute",
    "horn",
    "viola",
    "tuba",
]
LANGUAGES = split_words(
    "French German Spanish Polish Greek Latin Arabic Hindi Dutch Danish Welsh Turkish Swedish Korean Thai Czech "
    "Irish Finnish Basque Tamil"
)
SPORTS = split_words(
    "tennis chess rowing hockey golf boxing fencing judo skiing cycling running swimming archery football rugby "
    "surfing climbing curling polo darts"
)
VEHICLES = split_words("car van bicycle truck boat tractor scooter motorbike canoe bus tram wagon sledge yacht jeep")
MATERIALS = split_words("wood iron glass clay paper stone copper wool silk leather brass steel cotton bone wax cork")
PLACES = [
    "kitchen",
    "cellar",
    "attic",
    "garden",
    "garage",
    "library",
    "office",
    "barn",
    "hall",
    "shed",
    "tower",
    "cabin",
    "chapel",
    "market",
    "harbour",
    "tent",
]
OBJECTS = split_words(
    "key lamp book ring cup coin map hat clock rope box bell drum knife mirror letter basket brush candle chair "
    "blanket bottle carpet compass cloak spoon statue sword table vase whistle umbrella ladder lantern medal"
)
TOPICS = split_words(
    "rivers bees trains gardens schools museums bridges forests cities markets holidays robots music books sleep "
    "rain farming sport cooking oceans bicycles parks libraries dreams winter travel painting friendship housing "
    "energy water maps birds dogs cats newspapers theatre mountains space history games toys bread tea coffee "
    "roads lakes islands"
)
COMMON = split_words(
    "time year day way thing man world life hand part child eye woman place work week case point company number "
    "group problem fact night area room word story month lot right study book job question power country minute "
    "name idea body information back parent face level door health person art war party result change morning "
    "reason research girl guy moment air teacher force education foot boy age policy process music market sense "
    "nation plan college interest death experience effect use class control field development role effort rate "
    "heart drug show leader light voice wife police mind price report decision son view relationship town road "
    "arm difference value building action season society tax director position player record paper space ground "
    "form event official matter center couple site project activity star table need court oil situation cost "
    "industry figure street image phone data picture practice piece land product doctor wall patient worker news "
    "test movie north love step wind river storm stone"
)
# Everyday words of every kind: the stock for look-alikes.
MIXED = (
    COMMON
    + JOBS
    + ANIMALS
    + FOODS
    + OBJECTS
    + TOPICS
    + split_words(
        "absent acorn adventure alarm almond anchor angle apron arrow autumn axle badge bamboo banner barrel "
        "beacon beetle bishop blossom bonfire border bottom branch breeze bronze bubble bucket budget bundle "
        "butter button cactus camera canvas captain carriage castle cavern cedar chamber channel chapter "
        "charm cherry chimney circle clover coast cobalt comet copper corner cottage cousin cradle crane "
        "cricket crown crystal curtain cushion daisy desert diamond dragon eagle earth echo elbow ember "
        "engine evening fabric falcon feather fence fiddle finger flame flower forest fountain frost galaxy "
        "gate giant ginger glacier glove grain grove hammer harvest hazel hill hollow horizon hunter island "
        "ivy jacket jasmine jewel jungle kettle kingdom kite knot ladder lemon lily linen lotus magnet maple "
        "marble meadow melon mirror mitten monkey mosaic nectar needle nettle nickel nutmeg oak ocean onion "
        "opal orbit orchard otter oyster palace panther parcel pebble pepper pigeon pillow pine planet pocket "
        "pony poppy prairie puzzle quarry quill raven reef ribbon robin rocket saddle saffron satin shadow "
        "shelter signal silver sketch sparrow spice spiral squirrel stable stream summer sunset temple "
        "thistle thunder ticket timber topaz trail treasure tulip tunnel turnip twig valley vapor velvet "
        "village vine walnut whale wheat willow window winter wolf yarn zebra zenith"
    )
)
COUNT_WORDS = split_words("zero one two three four five six seven eight nine ten")


def is_held_out(word: str) -> bool:
    """Say on which side of the split a word lies; the same for every list and every run."""
    return zlib.crc32(word.lower().encode()) % HELD_OUT_SHARE == 0


def blend(rng: Random, words: list[str]) -> str:
    """Join the head of one training word and the tail of another: a word spelled like those of the list."""
    while True:
        head, tail = rng.choice(words), rng.choice(words)
        if is_held_out(head) or is_held_out(tail):
            continue
        word = head[: rng.randrange(1, len(head))] + tail[rng.randrange(1, len(tail)) :]
        if 3 <= len(word) <= 10 and word not in words and not is_held_out(word):
            return word


def pick(rng: Random, words: list[str], split: Split) -> str:
    """Draw a word of one side; in training often a look-alike, so that words are read by their letters."""
    wanted = split is Split.HELD_OUT
    if not wanted and rng.random() < 0.55:
        return blend(rng, words)
    while True:
        word = words[int(rng.random() * len(words))]
        if is_held_out(word) is wanted:
            return word


def open_pick(rng: Random, words: list[str], split: Split) -> str:
    """Draw a word of one side; in training often a made one, so that a list is no closed set of answers."""
    if split is Split.TRAIN and rng.random() < 0.3:
        return made_word(rng, split)
    return pick(rng, words, split)


def syllables(rng: Random, count: int) -> str:
    """Make a pronounceable lower-case word."""
    parts: list[str] = []
    for _ in range(count):
        parts.append(rng.choice(_ONSETS))
        parts.append(rng.choice(_VOWELS))
    parts.append(rng.choice(_CODAS))
    return "".join(parts)


def made_word(rng: Random, split: Split) -> str:
    """Make a lower-case word that lies on the wanted side."""
    wanted = split is Split.HELD_OUT
    if not wanted and rng.random() < 0.3:
        return blend(rng, MIXED)
    while True:
        word = syllables(rng, rng.choice((1, 2, 2, 3)))
        if len(word) > 2 and is_held_out(word) is wanted:
            return word


def first_name(rng: Random, split: Split) -> str:
    """Draw a given name: common or made up."""
    if rng.random() < 0.4:
        return pick(rng, FIRST_NAMES, split)
    return made_word(rng, split).capitalize()


def last_name(rng: Random, split: Split) -> str:
    """Make a family name."""
    return made_word(rng, split).capitalize()


def person(rng: Random, split: Split) -> str:
    """Make a person's name, mostly a given name alone."""
    first = first_name(rng, split)
    return first if rng.random() < 0.6 else f"{first} {last_name(rng, split)}"


def city(rng: Random, split: Split) -> str:
    """Make a place name."""
    stem = made_word(rng, split).capitalize()
    return stem if rng.random() < 0.6 else stem + rng.choice(_CITY_ENDINGS)


def code(rng: Random) -> str:
    """Make a string with no pattern: letters, digits, now and then an accent."""
    draw = rng.random()
    if draw < 0.35:
        return "".join(rng.choice("ABCDEFGHJKLMNPQRSTUVWXYZ") for _ in range(2)) + f"-{rng.randrange(1000):03d}"
    if draw < 0.7:
        return "".join(rng.choice(_LETTERS) for _ in range(rng.randrange(3, 8)))
    if draw < 0.85:
        return str(rng.randrange(10, 10000))
    return "".join(rng.choice(_LETTERS + _ACCENTED) for _ in range(rng.randrange(3, 7))).capitalize()


def year(rng: Random) -> str:
    """Draw a year."""
    return str(rng.randrange(1900, 2030))


def small_number(rng: Random) -> str:
    """Draw a number of one or two digits."""
    return str(rng.randrange(2, 100))


def any_word(rng: Random, split: Split) -> str:
    """Draw a word of any kind."""
    draw = rng.random()
    if draw < 0.35:
        return pick(rng, COMMON, split)
    if draw < 0.6:
        return made_word(rng, split)
    if draw < 0.7:
        return made_word(rng, split).capitalize()
    if draw < 0.8:
        return code(rng)
    return pick(rng, rng.choice((JOBS, COLORS, ANIMALS, FOODS, OBJECTS, TOPICS, MATERIALS)), split)


def distinct(count: int, draw: Callable[[], str]) -> list[str]:
    """Draw different values from a zero-argument callable."""
    found: list[str] = []
    while len(found) < count:
        value = draw()
        if value not in found:
            found.append(value)
    return found
