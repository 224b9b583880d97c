"""Texts: ``re``, ``json``, ``textwrap``, ``html``, ``base64``, ``hashlib``, ``difflib``, paths and addresses."""

from __future__ import annotations

from collections.abc import Mapping

TABLE: Mapping[str, str] = {
    "builtins": """
        str.encode: text, encoding=text, errors=text -> bytes ! UnicodeError LookupError
        str.format_map: text, any -> text ! KeyError IndexError ValueError TypeError AttributeError OverflowError
        str.maketrans: any, text?, text? -> object ! ValueError TypeError
        bytes.decode: bytes, encoding=text, errors=text -> text ! UnicodeError LookupError
        bytes.hex: bytes -> text
        bytes.upper bytes.lower bytes.strip: bytes -> bytes
    """,
    "json": """
        loads: json -> object ! json.JSONDecodeError RecursionError ValueError
        dumps: obj:any, *, indent=int|text|none, sort_keys=bool, ensure_ascii=bool, separators=any, \
            allow_nan=bool -> text ! TypeError ValueError RecursionError
    """,
    "re": """
        search match fullmatch: pattern:pattern|Pattern, string:text, flags=flags -> Match? \
            ! re.error OverflowError RecursionError ValueError
        sub: pattern:pattern|Pattern, repl:text, string:text, count=int, flags=flags -> text \
            ! re.error IndexError OverflowError RecursionError ValueError
        subn: pattern:pattern|Pattern, repl:text, string:text, count=int, flags=flags -> tuple[text, int] \
            ! re.error IndexError OverflowError RecursionError ValueError
        findall: pattern:pattern|Pattern, string:text, flags=flags -> list[any] \
            ! re.error OverflowError RecursionError ValueError
        split: pattern:pattern|Pattern, string:text, maxsplit=int, flags=flags -> list[any] \
            ! re.error OverflowError RecursionError ValueError
        escape: pattern:text -> text
        compile: pattern:pattern|Pattern, flags=flags -> Pattern ! re.error OverflowError RecursionError ValueError
        Pattern.search Pattern.match Pattern.fullmatch: Pattern, string:text, pos=int, endpos=int -> Match? \
            ! OverflowError
        Pattern.findall: Pattern, string:text, pos=int, endpos=int -> list[any] ! OverflowError
        Pattern.split: Pattern, string:text, maxsplit=int -> list[any] ! OverflowError
        Pattern.sub: Pattern, repl:text, string:text, count=int -> text ! re.error IndexError OverflowError
        Pattern.subn: Pattern, repl:text, string:text, count=int -> tuple[text, int] \
            ! re.error IndexError OverflowError
        Match.group: Match, *int|text -> any ! IndexError
        Match.start Match.end: Match, int|text? -> int ! IndexError
        Match.span: Match, int|text? -> tuple[int, int] ! IndexError
        Match.groups: Match, default=scalar -> any
        Match.groupdict: Match, default=scalar -> object
        Match.expand: Match, text -> text ! re.error IndexError
        .string: Match -> text
        .re: Match -> Pattern
        .lastindex .lastgroup: Match -> any
        .pattern: Pattern -> text
        .groups: Pattern -> int
    """,
    "textwrap": """
        dedent: text:text -> text
        indent: text:text, prefix:text -> text
        fill: text:text, width=int, *, initial_indent=text, subsequent_indent=text, break_long_words=bool, \
            max_lines=int, placeholder=text -> text ! ValueError
        wrap: text:text, width=int, *, initial_indent=text, subsequent_indent=text, break_long_words=bool, \
            max_lines=int, placeholder=text -> list[text] ! ValueError
        shorten: text:text, width:int, *, placeholder=text -> text ! ValueError
    """,
    "string": """
        capwords: s:text, sep=text|none -> text ! ValueError
    """,
    "html": """
        escape: s:text, quote=bool -> text
        unescape: s:text -> text
    """,
    "base64": """
        b64encode b32encode b16encode urlsafe_b64encode: s:bytes -> bytes
        b64decode urlsafe_b64decode b32decode b16decode: s:text|bytes -> bytes ! ValueError
    """,
    "hashlib": """
        md5 sha1 sha256 sha512: bytes? -> Hash
        HASH.hexdigest: Hash -> text
        HASH.digest: Hash -> bytes
    """,
    "difflib": """
        get_close_matches: word:text, possibilities:list[text], n=int, cutoff=float -> list[text] ! ValueError
        SequenceMatcher: isjunk=none, a=text, b=text, autojunk=bool -> SequenceMatcher
        SequenceMatcher.ratio SequenceMatcher.quick_ratio SequenceMatcher.real_quick_ratio: SequenceMatcher -> float
        SequenceMatcher.get_opcodes SequenceMatcher.get_matching_blocks: SequenceMatcher -> list[any]
    """,
    "posixpath": """
        join: text, *text -> text
        basename dirname normpath normcase: text -> text
        split splitext: text -> tuple[text, text]
        isabs: text -> bool
    """,
    "urllib.parse": """
        quote quote_plus: string:text, safe=text -> text ! UnicodeError
        unquote unquote_plus: string:text -> text
        urljoin: base:url, url:url -> text ! ValueError
        urlsplit: url:url -> SplitResult ! ValueError
        urlparse: url:url -> ParseResult ! ValueError
        .scheme .netloc .path .query .fragment: SplitResult -> text
        .hostname .port: SplitResult -> any ! ValueError
        .scheme .netloc .path .params .query .fragment: ParseResult -> text
        .hostname .port: ParseResult -> any ! ValueError
        parse_qs: qs:text -> object ! ValueError
        parse_qsl: qs:text -> list[any] ! ValueError
        urlencode: any -> text ! TypeError ValueError
    """,
}
