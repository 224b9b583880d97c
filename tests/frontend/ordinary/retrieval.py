"""Answering from documents: retrievers, rerankers, citations, few-shot examples that are looked up."""

# Programs as users write them.
# pyright: basic

import re
from collections import Counter
from dataclasses import dataclass

import lmc


@dataclass(frozen=True)
class Document:
    key: str
    title: str
    text: str


class Retriever:
    """Ranks documents by the words that they share with a query."""

    def __init__(self, documents: list[Document], top_k: int = 2):
        self.documents = documents
        self.top_k = top_k
        self.index = {document.key: Counter(tokenize(document.text)) for document in documents}

    def search(self, query: str) -> list[Document]:
        words = tokenize(query)
        scored = [(sum(self.index[d.key][w] for w in words), d) for d in self.documents]
        ranked = sorted(scored, key=lambda pair: (-pair[0], pair[1].key))
        return [document for score, document in ranked[: self.top_k] if score > 0]

    def get(self, key: str) -> Document | None:
        return next((document for document in self.documents if document.key == key), None)


def tokenize(text: str) -> list[str]:
    return re.findall(r"[a-z]+", text.lower())


LIBRARY = Retriever(
    [
        Document("d1", "Tea", "Tea is made from leaves. The leaves are dried and the water is hot."),
        Document("d2", "Coffee", "Coffee is made from roasted beans. The water is hot."),
        Document("d3", "Bread", "Bread is baked from flour, water and salt in an oven."),
        Document("d4", "Rain", "Rain is water that falls from clouds."),
    ]
)


@lmc.jit
def answer_from_documents(s, question: str):
    """Plain RAG: search, put what was found into the prompt, answer, or say that nothing is known."""
    found = LIBRARY.search(question)
    if not found:
        return {"answer": "I don't know.", "sources": []}
    context = "\n\n".join(f"[{document.key}] {document.title}\n{document.text}" for document in found)
    s += lmc.system("Answer from the context only.")
    s += lmc.user(f"Context:\n{context}\n\nQuestion: {question}")
    answer = s.gen("answer", max_tokens=30, stop="\n")
    return {"answer": answer.strip(), "sources": [document.key for document in found]}


@lmc.jit
def answer_with_citations(s, question: str, retriever: Retriever):
    """Answer, then have each source judged, and mention only those that support the answer."""
    documents = retriever.search(question)
    s += lmc.user(question)
    answer = s.gen("answer", max_tokens=20, stop=["\n", "."])
    cited = []
    for document in documents:
        checker = s.copy()
        checker += lmc.user(f"{document.title}: {document.text}\nDoes this support the answer?")
        verdict = checker.select("verdict", ["supports", "contradicts", "unrelated"])
        if verdict == "contradicts":
            s += lmc.user(f"{document.title} contradicts this. Correct the answer.")
            answer = s.gen("answer", max_tokens=20, stop=["\n", "."])
            cited = [document.key]
            break
        if verdict == "supports":
            cited.append(document.key)
    marks = "".join(f"[{key}]" for key in cited) or "[no source]"
    return f"{answer.strip()} {marks}"


@lmc.jit
def multi_hop(s, question: str, hops: int):
    """Ask follow-up questions until the model has enough; remember what was read."""
    notes: list[str] = []
    seen: set[str] = set()
    query = question
    for hop in range(hops):
        new = [document for document in LIBRARY.search(query) if document.key not in seen]
        if not new:
            notes.append(f"(nothing new for {query.strip()!r})")
        for document in new:
            seen.add(document.key)
            reader = s.copy()
            reader += lmc.user(f"{document.text}\nNote what helps to answer: {question}")
            notes.append(reader.gen("note", max_tokens=12, stop="\n").strip())
        s += lmc.user(f"Question: {question}\nNotes:\n" + "\n".join(f"- {note}" for note in notes))
        if s.select("enough", ["enough", "search again"]) == "enough":
            break
        s += lmc.user(f"What do you search for in hop {hop + 2}?")
        query = s.gen("query", regex="(tea|coffee|bread|rain|water) (leaves|beans|oven|clouds)")
    s += lmc.user("Answer now.")
    return s.gen("answer", max_tokens=16, stop="\n").strip(), sorted(seen), notes


@lmc.jit
def rerank(s, query: str, passages: list[str], keep: int):
    """Let the model grade passages, drop the bad ones, and answer from the best."""
    graded = []
    for position, passage in enumerate(passages):
        grader = s.copy()
        grader += lmc.user(f"Query: {query}\nPassage: {passage}\nRelevance from 0 to 9:")
        graded.append((grader.gen("relevance", dtype=int, max_tokens=2), position, passage))
    graded = [item for item in graded if item[0] >= 3]
    graded.sort(key=lambda item: (-item[0], item[1]))
    if len(graded) == 0:
        s += lmc.user(f"{query}\nNothing relevant was found. Apologise.")
        return s.gen("sorry", max_tokens=10, stop="."), []
    best = graded[:keep]
    s += lmc.user("\n".join(f"{rank}. {passage}" for rank, (_, _, passage) in enumerate(best, start=1)))
    s += lmc.user(query)
    return s.gen("answer", max_tokens=20, stop="\n"), [position for _, position, _ in best]


EXAMPLES = [
    {"text": "The battery died after a week.", "label": "complaint"},
    {"text": "How do I change the language?", "label": "question"},
    {"text": "The new screen is wonderful, thank you.", "label": "praise"},
    {"text": "Where is the battery?", "label": "question"},
    {"text": "My screen broke and nobody answers.", "label": "complaint"},
    {"text": "I love the colours.", "label": "praise"},
]


def similarity(one: str, other: str) -> float:
    a, b = set(tokenize(one)), set(tokenize(other))
    return len(a & b) / len(a | b) if a | b else 0.0


@lmc.jit
def few_shot_classifier(s, text: str, shots: int):
    """Show the examples that are most similar to the text, the most similar last."""
    nearest = sorted(EXAMPLES, key=lambda example: similarity(text, example["text"]), reverse=True)[:shots]
    labels = sorted({example["label"] for example in EXAMPLES})
    for example in reversed(nearest):
        s += lmc.user(f"Text: {example['text']}")
        s += lmc.assistant(example["label"])
    s += lmc.user(f"Text: {text}")
    label = s.select("label", labels)
    agreeing = sum(example["label"] == label for example in nearest)
    if agreeing < len(nearest) / 2:
        s += lmc.user("Are you sure? Think again.")
        s.gen("thought", max_tokens=12, stop="\n")
        label = s.select("label", labels)
    return label, agreeing


@lmc.jit
def balanced_shots(s, texts: list[str]):
    """One example of each label, and what was labelled before becomes an example for what follows."""
    shots: dict[str, str] = {}
    for example in EXAMPLES:
        shots.setdefault(example["label"], example["text"])
    labelled = []
    for text in texts:
        classifier = s.copy()
        prompt = "\n".join(f"{shown} -> {label}" for label, shown in shots.items())
        classifier += f"{prompt}\n{text} ->"
        label = classifier.gen("label", choices=list(shots))
        if classifier.gen("typical", dtype=bool):
            shots[label] = text
        labelled.append((text, label))
    return labelled, shots
