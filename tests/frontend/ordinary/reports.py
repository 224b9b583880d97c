"""Reports: sections, tables, chunks of long texts, minutes, changelogs."""

# Programs as users write them.
# pyright: basic

import logging
import re
import textwrap
from collections import defaultdict
from datetime import date, timedelta
from itertools import chain, groupby, islice

import lmc

log = logging.getLogger("reports")


def chunks(text: str, size: int):
    """Pieces of about ``size`` characters, cut at blanks."""
    yield from textwrap.wrap(text, size, break_long_words=False)


@lmc.jit
def map_reduce_summary(s, document: str, size: int):
    """Sum up each chunk in a branch of its own, then all summaries."""
    parts = list(chunks(document, size))
    branches = s.fork(len(parts)) if parts else []
    summaries = []
    for number, (branch, part) in enumerate(zip(branches, parts), start=1):
        branch += lmc.user(f"Part {number} of {len(parts)}:\n{part}\nSum up.")
        summaries.append(branch.gen("summary", max_tokens=14, stop="\n").strip())
    if not summaries:
        return "(empty)"
    if len(summaries) == 1:
        return summaries[0]
    s += lmc.user("Combine:\n" + "\n".join(f"{n}. {text}" for n, text in enumerate(summaries, 1)))
    return s.gen("overall", max_tokens=24, stop="\n").strip()


@lmc.jit
def refine_summary(s, document: str, size: int):
    """One chunk after the other refines a running summary, unless it adds nothing."""
    summary = ""
    skipped = 0
    for part in chunks(document, size):
        editor = s.copy()
        editor += lmc.user(f"Summary: {summary or '-'}\nNew text: {part}")
        if summary and editor.select("adds", ["adds something", "adds nothing"]) == "adds nothing":
            skipped += 1
            continue
        editor += lmc.user("Write the new summary.")
        summary = editor.gen("summary", max_tokens=16, stop="\n").strip() or summary
    return textwrap.shorten(summary, width=30, placeholder=" [...]"), skipped


@lmc.jit
def sectioned_report(s, subject: str, sections: list[str], width: int):
    """Sections that know the earlier ones, set in a column, with a table of contents."""
    s += lmc.system("You write reports.")
    s += lmc.user(f"Write a report on {subject}.")
    body = []
    contents = []
    line = 1
    for number, heading in enumerate(sections, start=1):
        s += lmc.user(f"Section {number}: {heading}")
        text = s.gen("section", max_tokens=40)
        paragraph = textwrap.fill(" ".join(text.split()), width) or "(nothing)"
        contents.append(f"{heading:.<20}{line:>3}")
        body += [heading.upper(), "=" * len(heading), paragraph, ""]
        line += paragraph.count("\n") + 4
    log.info("report on %s: %d sections, %d lines", subject, len(sections), line - 1)
    return "\n".join(chain(contents, [""], body)).rstrip()


@lmc.jit
def meeting_minutes(s, transcript: str, day: str):
    """Decisions and tasks from a transcript, with dates, grouped by person."""
    tasks = defaultdict(list)
    decisions = []
    base = date.fromisoformat(day)
    for line in transcript.strip().splitlines():
        match = re.match(r"(?P<who>\w+):\s*(?P<what>.+)", line)
        if not match:
            continue
        who, what = match["who"], match["what"]
        reader = s.copy()
        reader += lmc.user(f"{who} said: {what}\nWhat is it?")
        kind = reader.select("kind", ["task", "decision", "talk"])
        if kind == "task":
            reader += lmc.user("Due in how many days?")
            due = base + timedelta(days=int(reader.gen("days", regex="[1-9]|1[0-4]")))
            tasks[who].append(f"{what} (until {due:%d.%m.})")
        elif kind == "decision":
            decisions.append(what)
    lines = [f"Minutes of {base:%A}, week {base.isocalendar().week}"]
    lines += [f"* {decision}" for decision in decisions]
    for who in sorted(tasks, key=str.lower):
        lines.append(f"{who}: " + "; ".join(tasks[who]))
    s += lmc.user("\n".join(lines) + "\nA title?")
    title = s.gen("title", max_tokens=8, stop="\n").strip().title()
    return title, lines


@lmc.jit
def changelog(s, commits: list[str]):
    """Commits are classified and grouped; the version that follows depends on the kinds found."""
    entries = []
    for commit in commits:
        subject, _, number = commit.partition(" #")
        s += lmc.user(f"Commit: {subject}")
        kind = s.select("kind", ["added", "fixed", "removed"])
        entries.append((kind, subject[0].upper() + subject[1:], number))
    entries.sort()
    lines = []
    for kind, group in groupby(entries, key=lambda entry: entry[0]):
        lines.append(f"### {kind.capitalize()}")
        lines.extend(f"- {subject}" + (f" (#{number})" if number else "") for _, subject, number in group)
    kinds = {kind for kind, _, _ in entries}
    bump = "major" if "removed" in kinds else "minor" if "added" in kinds else "patch"
    return bump, "\n".join(lines)


@lmc.jit
def sales_comment(s, figures: dict[str, float], target: float):
    """A table of figures with comments on the rows that are out of line."""
    total = sum(figures.values())
    rows = [f"{'region':<8}{'sales':>10}{'share':>8}"]
    for region, amount in sorted(figures.items(), key=lambda item: item[1], reverse=True):
        share = amount / total if total else 0
        row = f"{region:<8}{amount:>10,.2f}{share:>8.1%}"
        if amount < target:
            analyst = s.copy()
            analyst += lmc.user(f"{row}\nWhy is {region} below {target:,.0f}?")
            cause = analyst.select("cause", ["weather", "price", "staff"])
            row += f"  <- {cause}"
        rows.append(row)
    print("\n".join(rows))
    marked = [row for row in rows if "<-" in row]
    if len(marked) > 1:
        s += lmc.user("\n".join(marked) + "\nWhat do these have in common?")
        return s.gen("common", max_tokens=12, stop="\n").strip(), len(marked)
    return None, len(marked)


@lmc.jit
def weekly_digest(s, posts: list[tuple[str, str]], start: str):
    """Posts of a week, per day, at most two a day, with a headline for each day."""
    first = date.fromisoformat(start)
    days = {first + timedelta(days=offset): [] for offset in range(7)}
    late = 0
    for stamp, text in posts:
        day = date.fromisoformat(stamp)
        if day not in days:
            late += 1
        else:
            days[day].append(text)
    digest = []
    for day, texts in days.items():
        if not texts:
            continue
        shown = list(islice(texts, 2))
        writer = s.copy()
        writer += lmc.user(f"{day:%A}: {' / '.join(shown)}\nHeadline?")
        headline = writer.gen("headline", max_tokens=8, stop=["\n", "."]).strip(" ,")
        more = f" (+{len(texts) - 2})" if len(texts) > 2 else ""
        digest.append(f"{day:%a} {headline or shown[0]}{more}")
    print(f"{len(digest)} days, {late} left out")
    return digest


@lmc.jit
def progress_log(s, steps: list[str]):
    """A long job that prints and logs as it goes, and stops at the first step that is refused."""
    for number, step in enumerate(steps, 1):
        print(f"[{number}/{len(steps)}] {step}", end=" ... ")
        s += lmc.user(f"Do: {step}")
        outcome = s.select("outcome", ["done", "refused", "partly"])
        print(outcome)
        if outcome == "refused":
            log.error("%s was refused", step)
            return number - 1
        if outcome == "partly":
            log.warning("%s: %s", step, s.gen("left", max_tokens=6, stop="\n").strip())
    log.info("all %d steps", len(steps))
    return len(steps)
