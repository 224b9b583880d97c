"""The limits of a report as JUnit XML: one case for each, in the form that CI systems read."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree

from lmc.report.cost.limits import CheckedLimit
from lmc.report.text import visible

_SUITE = "lmc cost"


def junit(limits: Sequence[CheckedLimit]) -> str:
    """Return the limits as a suite: exceeded ones fail, unknown ones are errors, those without a baseline are skipped.

    There is no time and no host in it: the same limits give the same bytes.
    """
    counts = {
        "tests": len(limits),
        "failures": sum(each.verdict == "exceeded" for each in limits),
        "errors": sum(each.verdict == "unknown" for each in limits),
        "skipped": sum(each.verdict == "new" for each in limits),
    }
    attributes = {"name": _SUITE, **{key: str(value) for key, value in counts.items()}}
    root = ElementTree.Element("testsuites", {key: value for key, value in attributes.items() if key != "skipped"})
    suite = ElementTree.SubElement(root, "testsuite", attributes)
    for each in limits:
        case = ElementTree.SubElement(suite, "testcase", classname=_text(each.scope), name=each.name)
        message = _text(each.message)
        if each.verdict == "new":
            ElementTree.SubElement(case, "skipped", message=message)
        elif each.fails:
            tag, kind = ("failure", "exceeded") if each.verdict == "exceeded" else ("error", "unknown")
            ElementTree.SubElement(case, tag, message=message, type=kind).text = f"{_text(each.scope)}: {message}"
        else:
            ElementTree.SubElement(case, "system-out").text = message
    ElementTree.indent(root, " ")
    body = ElementTree.tostring(root, encoding="us-ascii", xml_declaration=False).decode("ascii")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{body}\n'


def _text(text: str) -> str:
    """Return a text without the characters that XML does not have."""
    return visible(text)
