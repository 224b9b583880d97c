/* How scores become weights: the softmax of the attention kernel, a tile at a time. */
#ifndef LMC_ATTENTION_WEIGHTS_H
#define LMC_ATTENTION_WEIGHTS_H
#include "attention.h"

/* a where it is above b, else b: NaN only where b is NaN. */
static inline vector above(vector a, vector b) {
#if LANES == 16
    return (vector)_mm512_max_ps((__m512)a, (__m512)b);
#else
    return choose(a > b, a, b);
#endif
}

static inline int any(ivector mask) {
#if LANES == 16
    return _mm512_test_epi32_mask((__m512i)mask, (__m512i)mask) != 0;
#else
    int64_t parts[LANES / 2], found = 0;
    memcpy(parts, &mask, sizeof parts);
    for (int at = 0; at < LANES / 2; at++) found |= parts[at];
    return found != 0;
#endif
}

static inline int any_above(vector a, vector b) {
#if LANES == 16
    return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_GT_OQ) != 0;
#else
    return any(a > b);
#endif
}

/* 2 to the x up to 100; below -125 as at -125. Relative error below 3e-7; NaN stays NaN, infinity becomes NaN.
 * The polynomial is that of least error on [-0.5, 0.5]. */
static inline vector power(vector x) {
    const float shift = 12583039.0f; /* 1.5 * 2^23 + 127: adding it rounds, and leaves the exponent's bits below */
    x = above(broadcast(-125.0f), x);
    vector shifted = x + shift;
    vector rest = x - (shifted - shift);
    vector sum = rest * 1.326472721e-3f + 9.671512812e-3f;
    sum = sum * rest + 5.550733745e-2f;
    sum = sum * rest + 2.402224208e-1f;
    sum = sum * rest + 6.931469776e-1f;
    sum = sum * rest + 1.0f;
    return sum * (vector)((uvector)shifted << 23);
}

/* As in Cephes' tanhf: a polynomial near 0, elsewhere by the exponential. */
static inline vector hyperbolic_tangent(vector x) {
    vector size = above(x, -x), square = x * x;
    vector sum = square * -5.70498872745e-3f + 2.06390887954e-2f;
    sum = sum * square - 5.37397155531e-2f;
    sum = sum * square + 1.33314422036e-1f;
    sum = sum * square - 3.33332819422e-1f;
    vector near = sum * square * x + x;
    vector far = 1.0f - 2.0f / (power(-(above(broadcast(-20.0f), -size)) * 2.88539008f) + 1.0f);
    return choose(size > 0.625f, choose(x < 0.0f, -far, far), near);
}

static inline ivector lanes(void) {
    ivector result;
    for (int lane = 0; lane < LANES; lane++) result[lane] = lane;
    return result;
}

static inline float largest(vector values) {
    float most = values[0];
    for (int lane = 1; lane < LANES; lane++)
        if (values[lane] > most) most = values[lane];
    return most;
}

/* Weights are relative to a maximum that follows the scores only when they exceed it by so many powers of 2. */
#define SLACK 8.0f

/* Takes over a higher maximum. */
static __attribute__((noinline)) void raise(const Rows *rows, int row, float highest) {
    float old = rows->maxima[row];
    rows->maxima[row] = highest;
    if (old == -INFINITY) return; /* nothing but 0 or NaN was added up */
    vector keep = power(broadcast(old - highest));
    *(vector *)(rows->sums + row * LANES) *= keep;
    float *results = rows->results + (int64_t)row * rows->width;
    for (int at = 0; at < rows->width; at += LANES) *(vector *)(results + at) *= keep;
}

/* Turns the scores [TILE] of one row into weights and adds them to its sums; `seen` is the part that it sees, `whole` a constant
 * that says that it is all of the tile. Weights of other keys are 0 whatever their scores. */
static inline __attribute__((always_inline)) void weigh(const Attention *call, const Rows *rows, int row, const float *scores,
                                                        Range seen, int whole, uint32_t *weights, int pairs) {
    const float base_2 = 1.44269504f;
    vector own[TILE / LANES], most = broadcast(-INFINITY);
    ivector inside[TILE / LANES];
    for (int at = 0; at < TILE / LANES; at++) {
        vector score = *(const vector *)(scores + at * LANES);
        if (call->softcap > 0) score = hyperbolic_tangent(score * (call->scale / call->softcap)) * (call->softcap * base_2);
        else score *= call->scale * base_2;
        if (!whole) {
            ivector key = lanes() + at * LANES;
            inside[at] = (key >= seen.from) & (key < seen.to);
            score = choose(inside[at], score, broadcast(-INFINITY));
        }
        most = above(score, most);
        own[at] = score;
    }
    if (any_above(most, broadcast(rows->maxima[row] + SLACK))) raise(rows, row, largest(most));
    float maximum = rows->maxima[row];
    vector sum = *(vector *)(rows->sums + row * LANES);
    for (int at = 0; at < TILE / LANES; at++) {
        if (maximum == -INFINITY) own[at] = choose(own[at] != own[at], own[at], broadcast(0));
        else own[at] = power(own[at] - maximum);
        if (!whole) own[at] = choose(inside[at], own[at], broadcast(0));
    }
    /* What is added up is what values are multiplied with: a row that sees one key gets its value. */
#if defined(__AVX512BF16__)
    for (int at = 0; pairs && at < TILE / LANES; at += 2) {
        uvector both = (uvector)_mm512_cvtne2ps_pbh((__m512)own[at + 1], (__m512)own[at]);
        *(uvector *)(weights + at * LANES / 2) = both;
        sum += (vector)(both << 16) + (vector)(both & 0xffff0000u);
    }
#endif
    for (int at = 0; !pairs && at < TILE / LANES; at++) {
        *(vector *)(weights + at * LANES) = own[at];
        sum += own[at];
    }
    *(vector *)(rows->sums + row * LANES) = sum;
}

/* The same for `count` rows from `first`, whose scores and weights lie one below the other. */
static inline __attribute__((always_inline)) void weigh_rows(const Attention *call, const Item *item, const Rows *rows, int first,
                                                             int count, int start, int keys, int whole, int pairs) {
    for (int at = 0; at < count; at++) {
        Range seen = visible(call, item, rows->positions[first + at], start, keys);
        uint32_t *weights = rows->weights + at * words(TILE, pairs);
        if (whole) weigh(call, rows, first + at, rows->scores + at * TILE, seen, 1, weights, pairs);
        else weigh(call, rows, first + at, rows->scores + at * TILE, seen, 0, weights, pairs);
    }
}

/* Not inlined: they are long, and used often. */
static __attribute__((noinline)) void weigh_floats(const Attention *call, const Item *item, const Rows *rows, int first, int count,
                                                   int start, int keys, int whole) {
    weigh_rows(call, item, rows, first, count, start, keys, whole, 0);
}

static __attribute__((noinline)) void weigh_pairs(const Attention *call, const Item *item, const Rows *rows, int first, int count,
                                                  int start, int keys, int whole) {
    weigh_rows(call, item, rows, first, count, start, keys, whole, 1);
}
#endif
