"""The Triton kernel of `masked_draw.py`: one program draws one row's token and takes its constraint a state further."""

import triton
import triton.language as tl


@triton.jit
def _row_logits(logits, row_start, classes, words, first, size, constrained, BLOCK: tl.constexpr):
    """Logits of one block of tokens, -inf for what is not allowed, and their ids. NaN stays NaN."""
    ids = first + tl.arange(0, BLOCK)
    inside = ids < size
    own = tl.load(logits + row_start + ids, mask=inside, other=float("-inf")).to(tl.float32)
    kind = tl.load(classes + ids, mask=inside & constrained, other=0)
    word = tl.load(words + (kind >> 5), mask=inside & constrained, other=-1)
    allowed = ((word >> (kind & 31)) & 1) != 0
    return tl.where(allowed, own, float("-inf")), own, ids


@triton.jit
def _key(values):
    """Integers in the order of floats."""
    bits = values.to(tl.int32, bitcast=True)
    return tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits)


@triton.jit
def _mass(
    logits,
    row_start,
    classes,
    words,
    size,
    constrained,
    highest,
    scale,
    bound,
    counts: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Weight of all tokens from a key on; with `counts` their number."""
    found = tl.zeros([], tl.float64)
    for first in range(0, size, BLOCK):
        masked, _, _ = _row_logits(logits, row_start, classes, words, first, size, constrained, BLOCK)
        reached = (_key(masked) >= bound) & (masked > float("-inf"))
        if counts:
            found += tl.sum(reached.to(tl.float64))
        else:
            weights = tl.exp((masked - highest) * scale)
            found += tl.sum(tl.where(reached, weights, 0.0).to(tl.float64))
    return found


@triton.jit
def _bound(
    logits,
    row_start,
    classes,
    words,
    size,
    constrained,
    highest,
    scale,
    low,
    need,
    counts: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """The largest key from `low` on such that tokens from it on have the mass (or the number) `need`."""
    first, last = low.to(tl.int64), _key(highest).to(tl.int64) + 1
    while last - first > 1:
        middle = (first + last) // 2
        found = _mass(
            logits, row_start, classes, words, size, constrained, highest, scale, middle.to(tl.int32), counts, BLOCK
        )
        enough = found >= need
        first = tl.where(enough, middle, first)
        last = tl.where(enough, last, middle)
    return first.to(tl.int32)


@triton.jit
def _kept_weights(masked, highest, scale, bound, ties, before, least):
    """Weights of a block, 0 for what is cut off; and how many tokens at the bound there are up to its end."""
    key = _key(masked)
    at_bound = (key == bound) & (masked > float("-inf"))
    place = before + tl.cumsum(at_bound.to(tl.int32))
    kept = ((key > bound) & (masked > float("-inf"))) | (at_bound & (place <= ties))
    weights = tl.where(kept, tl.exp((masked - highest) * scale), 0.0)
    return tl.where(weights >= least, weights, 0.0), before + tl.sum(at_bound.to(tl.int32))


@triton.jit
def _ones(words):
    """Return the number of bits set in each word."""
    words = words - ((words >> 1) & 0x55555555)
    words = (words & 0x33333333) + ((words >> 2) & 0x33333333)
    words = (words + (words >> 4)) & 0x0F0F0F0F
    return (words + (words >> 8) + (words >> 16) + (words >> 24)) & 0x3F


@triton.jit
def masked_draw_kernel(
    logits,
    row_stride,
    size,
    row_states,
    temperatures,
    top_ks,
    top_ps,
    min_ps,
    uniforms,
    all_classes,
    all_words,
    first_words,
    word_counts,
    first_nexts,
    nexts,
    tables,
    out_tokens,
    out_highest,
    out_states,
    BLOCK: tl.constexpr,
):
    """See `masked_draw.py` for the arguments: logits, `Draws`, `ConstraintTables`, `Drawn`."""
    row = tl.program_id(0)
    row_start = row.to(tl.int64) * row_stride
    state = tl.load(row_states + row)
    constrained = state >= 0
    held = tl.where(constrained, state, 0)
    words = all_words + tl.load(first_words + held, mask=constrained, other=0)
    classes = all_classes + tl.load(tables + held, mask=constrained, other=0).to(tl.int64) * size

    highest = float("-inf")
    likeliest = size
    strange = 0
    for first in range(0, size, BLOCK):
        masked, own, ids = _row_logits(  # pyright: ignore[reportGeneralTypeIssues]
            logits, row_start, classes, words, first, size, constrained, BLOCK
        )
        strange += tl.sum((own != own).to(tl.int32))
        masked = tl.where(own != own, float("-inf"), masked)
        largest = tl.max(masked)
        here = tl.min(tl.where(masked == largest, ids, size))
        likeliest = tl.where(largest > highest, here, likeliest)
        highest = tl.maximum(highest, largest)
    token = tl.minimum(likeliest, size - 1)

    temperature = tl.load(temperatures + row)
    if (temperature > 0) & (strange == 0) & (highest > float("-inf")) & (highest < float("inf")):
        scale = 1.0 / tl.maximum(temperature, 1e-30)
        bound = _key(tl.full([], float("-inf"), tl.float32))
        ties = size
        top_k = tl.load(top_ks + row)
        if (top_k > 0) & (top_k < size):
            need = top_k.to(tl.float64)
            bound = _bound(
                logits, row_start, classes, words, size, constrained, highest, scale, bound, need, True, BLOCK
            )
            above = _mass(logits, row_start, classes, words, size, constrained, highest, scale, bound + 1, True, BLOCK)
            ties = (need - above).to(tl.int32)
        top_p = tl.load(top_ps + row)
        if top_p < 1:
            tie = tl.exp((_value(bound) - highest) * scale).to(tl.float64)
            above = _mass(logits, row_start, classes, words, size, constrained, highest, scale, bound + 1, False, BLOCK)
            number = _mass(
                logits, row_start, classes, words, size, constrained, highest, scale, bound, True, BLOCK
            ) - _mass(logits, row_start, classes, words, size, constrained, highest, scale, bound + 1, True, BLOCK)
            whole = above + tl.where(tie > 0, tl.minimum(number, ties.to(tl.float64)) * tie, 0.0)
            need = top_p.to(tl.float64) * whole
            if above >= need:
                bound = _bound(
                    logits, row_start, classes, words, size, constrained, highest, scale, bound, need, False, BLOCK
                )
                tie = tl.exp((_value(bound) - highest) * scale).to(tl.float64)
                above = _mass(
                    logits, row_start, classes, words, size, constrained, highest, scale, bound + 1, False, BLOCK
                )
                ties = size
            wanted = tl.where(tie > 0, (need - above) / tie, 1.0)
            ties = tl.minimum(ties, tl.maximum(tl.ceil(wanted), 1.0).to(tl.int32))

        least = tl.load(min_ps + row)
        total = tl.zeros([], tl.float64)
        passed = 0
        for first in range(0, size, BLOCK):
            masked, _, ids = _row_logits(logits, row_start, classes, words, first, size, constrained, BLOCK)
            weights, passed = _kept_weights(masked, highest, scale, bound, ties, passed, least)
            total += tl.sum(weights.to(tl.float64))
        target = tl.load(uniforms + row) * total
        reached = tl.zeros([], tl.float64)
        passed = 0
        found = size
        last = 0
        for first in range(0, size, BLOCK):
            masked, _, ids = _row_logits(logits, row_start, classes, words, first, size, constrained, BLOCK)
            weights, passed = _kept_weights(masked, highest, scale, bound, ties, passed, least)
            so_far = reached + tl.cumsum(weights.to(tl.float64))
            found = tl.minimum(found, tl.min(tl.where((so_far > target) & (weights > 0), ids, size)))
            last = tl.maximum(last, tl.max(tl.where(weights > 0, ids, 0)))
            reached += tl.sum(weights.to(tl.float64))
        token = tl.where(found < size, found, last)

    tl.store(out_tokens + row, token)
    tl.store(out_highest + row, tl.where(strange > 0, float("nan"), highest))
    following = state
    if constrained & (strange == 0) & (highest > float("-inf")):
        kind = tl.load(classes + token)
        place = tl.load(first_nexts + held)
        for number in range(0, tl.load(word_counts + held)):
            word = tl.load(words + number)
            below = tl.where(number < (kind >> 5), -1, tl.where(number == (kind >> 5), (1 << (kind & 31)) - 1, 0))
            place += _ones(word & below)
        following = state + tl.load(nexts + place)
    tl.store(out_states + row, following)


@triton.jit
def _value(key):
    """The float of a key."""
    return tl.where(key < 0, key ^ 0x7FFFFFFF, key).to(tl.float32, bitcast=True)
