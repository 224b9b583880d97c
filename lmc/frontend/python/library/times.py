"""Dates and times, ids, and functions whose calls are seen from outside: printing, logging, clocks."""

from __future__ import annotations

from collections.abc import Mapping

TABLE: Mapping[str, str] = {
    "builtins": """
        print: *any, sep=text|none, end=text|none, flush=bool -> none \
            ! TypeError ValueError OSError RecursionError ; logs
    """,
    "datetime": """
        date: year:int, month:int, day:int -> date ! ValueError OverflowError
        datetime: year:int, month:int, day:int, hour=int, minute=int, second=int, microsecond=int -> datetime \
            ! ValueError OverflowError
        time: hour=int, minute=int, second=int, microsecond=int -> daytime ! ValueError OverflowError
        timedelta: days=number, seconds=number, microseconds=number, milliseconds=number, minutes=number, \
            hours=number, weeks=number -> timedelta ! OverflowError ValueError
        date.fromisoformat: isodate -> date ! ValueError
        date.fromordinal: int -> date ! ValueError OverflowError
        datetime.fromisoformat: isodate -> datetime ! ValueError
        datetime.strptime: isodate, text -> datetime ! ValueError OverflowError re.error
        datetime.now datetime.utcnow datetime.today: -> datetime ; draws
        date.today: -> date ; draws
        datetime.combine: date, daytime -> datetime
        date.isoformat date.ctime: date -> text
        date.strftime: date, format:text -> text ! ValueError UnicodeError
        date.weekday date.isoweekday date.toordinal: date -> int
        date.isocalendar: date -> any
        date.replace: date, year=int, month=int, day=int -> date ! ValueError OverflowError
        date.timetuple: date -> any
        datetime.isoformat: datetime, sep=text, timespec=text -> text ! ValueError TypeError
        datetime.strftime: datetime, format:text -> text ! ValueError UnicodeError
        datetime.date: datetime -> date
        datetime.time: datetime -> daytime
        datetime.weekday datetime.isoweekday datetime.toordinal: datetime -> int
        datetime.replace: datetime, year=int, month=int, day=int, hour=int, minute=int, second=int, \
            microsecond=int -> datetime ! ValueError OverflowError
        timedelta.total_seconds: timedelta -> float
        time.isoformat: daytime -> text
        time.strftime: daytime, format:text -> text ! ValueError UnicodeError
        .year .month .day: date -> int
        .year .month .day .hour .minute .second .microsecond: datetime -> int
        .hour .minute .second .microsecond: daytime -> int
        .days .seconds .microseconds: timedelta -> int
    """,
    "time": """
        time monotonic perf_counter process_time: -> float ; draws
        time_ns monotonic_ns perf_counter_ns: -> int ; draws
        sleep: number -> none ! ValueError OverflowError ; draws
        strftime: text -> text ! ValueError ; draws
    """,
    "uuid": """
        UUID: text -> UUID ! ValueError
        uuid4 uuid1: -> UUID ; draws
        uuid3 uuid5: UUID, text -> UUID
        .hex .urn: UUID -> text
        .int .version: UUID -> any
    """,
    "logging": """
        Logger.debug Logger.info Logger.warning Logger.error Logger.critical: Logger, any, *any, \
            extra=any -> none ! Exception ; logs
        Logger.log: Logger, int, any, *any, extra=any -> none ! Exception ; logs
        Logger.isEnabledFor: Logger, int -> bool ; logs
        Logger.getEffectiveLevel: Logger -> int ; logs
        Logger.setLevel: Logger, any -> none ! TypeError ValueError ; logs
        debug info warning error critical: any, *any -> none ! Exception ; logs
        getLogger: text|none? -> Logger ; logs
    """,
}
