"""Numbers: ``math``, ``statistics``, ``random``, ``fractions``, ``decimal``, and operators as functions."""

from __future__ import annotations

from collections.abc import Mapping

TABLE: Mapping[str, str] = {
    "builtins": """
        divmod: int, int -> tuple[int, int] ! ZeroDivisionError
        pow: int, int, int -> int ! ValueError
        hash: scalar -> int ; unstable
        int.bit_length int.bit_count: int -> int
        float.is_integer: float -> bool
        .__name__ .__qualname__ .__module__: class -> text
        dict.fromkeys: list[scalar], scalar? -> object
        bin oct hex: int -> text
        complex: number?, number? -> any ! OverflowError
    """,
    "math": """
        sin cos tan: number -> float ! ValueError OverflowError
        asin acos sqrt log2 log10 log1p acosh atanh gamma: number -> float ! ValueError OverflowError
        exp expm1 exp2 cbrt cosh sinh lgamma: number -> float ! ValueError OverflowError
        atan asinh tanh erf erfc degrees radians fabs ulp: number -> float ! OverflowError
        log: number, number? -> float ! ValueError OverflowError ZeroDivisionError
        atan2 copysign fmod pow remainder nextafter: number, number -> float ! ValueError OverflowError
        hypot: *number -> float ! OverflowError
        dist: list[number], list[number] -> float ! ValueError OverflowError
        floor ceil trunc: number -> int ! ValueError OverflowError
        isnan isinf isfinite: number -> bool ! OverflowError
        isclose: a:number, b:number, *, rel_tol=float, abs_tol=float -> bool ! ValueError OverflowError
        gcd lcm: *int -> int
        isqrt: int -> int ! ValueError
        factorial: int -> int ! ValueError OverflowError ; ints<=1000
        comb perm: int, int -> int ! ValueError OverflowError ; ints<=1000
        fsum: list[number] -> float ! ValueError OverflowError
        prod: list[number], *, start=number -> any ! OverflowError
        modf: number -> tuple[float, float] ! OverflowError
        frexp: number -> tuple[float, int] ! OverflowError
        ldexp: number, int -> float ! OverflowError
    """,
    "statistics": """
        mean: list[number] -> any ! statistics.StatisticsError OverflowError
        fmean: data:list[number], weights=list[number] -> float ! statistics.StatisticsError OverflowError ValueError
        median: list[number] -> any ! statistics.StatisticsError OverflowError
        median_low median_high: list[number] -> any ! statistics.StatisticsError
        mode: list[scalar] -> item ! statistics.StatisticsError
        multimode: list[scalar] -> list[item]
        stdev pstdev: list[number] -> float ! statistics.StatisticsError OverflowError AttributeError ValueError
        variance pvariance: list[number] -> any ! statistics.StatisticsError OverflowError AttributeError ValueError
        harmonic_mean geometric_mean: list[number] -> any ! statistics.StatisticsError OverflowError ValueError
        quantiles: data:list[number], *, n=int, method=text -> list[any] \
            ! statistics.StatisticsError ValueError OverflowError
    """,
    "random": """
        Random: scalar? -> Random ; draws
        Random.random: Random -> float ; draws
        Random.uniform: Random, number, number -> float ! OverflowError ; draws
        Random.gauss Random.normalvariate: Random, mu=number, sigma=number -> float ! OverflowError ; draws
        Random.randint: Random, a:int, b:int -> int ! ValueError ; draws
        Random.randrange: Random, int, int? -> int ! ValueError ; draws
        Random.getrandbits: Random, int -> int ! ValueError OverflowError MemoryError ; draws
        Random.choice: Random, list[scalar] -> item ! IndexError ; draws
        Random.choices: Random, list[scalar], weights=list[number], *, k=int -> list[item] \
            ! IndexError ValueError TypeError ; draws
        Random.sample: Random, list[scalar], k:int -> list[item] ! ValueError ; draws
        Random.shuffle: Random, list[any] -> none ; draws mutates
        Random.seed: Random, scalar? -> none ; draws
    """,
    "bisect": """
        bisect_left bisect_right: a:list[scalar], x:scalar, lo=int, hi=int|none -> int \
            ! TypeError ValueError IndexError OverflowError
    """,
    "operator": """
        concat: text, text -> text
        countOf: list[scalar], scalar -> int
        indexOf: list[scalar], scalar -> int ! ValueError
        index: int -> int
    """,
    "fractions": """
        Fraction: int, int? -> Fraction ! ZeroDivisionError
        Fraction.limit_denominator: Fraction, int? -> Fraction ! ValueError
        .numerator .denominator: Fraction -> int
    """,
    "decimal": """
        Decimal: text|int -> Decimal ! decimal.InvalidOperation
        Decimal.quantize: Decimal, Decimal -> Decimal ! decimal.InvalidOperation
        Decimal.is_nan Decimal.is_zero Decimal.is_finite Decimal.is_signed: Decimal -> bool
        Decimal.sqrt: Decimal -> Decimal ! decimal.InvalidOperation
        Decimal.normalize Decimal.to_integral_value: Decimal -> Decimal ! decimal.InvalidOperation decimal.Overflow
    """,
}
