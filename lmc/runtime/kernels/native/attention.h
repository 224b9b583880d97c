/* What the parts of the attention kernel share: the plan, the rows of an item, and how what lies in pages is loaded. */
#ifndef LMC_ATTENTION_H
#define LMC_ATTENTION_H
#include "attention_call.h"
#include "elements.h"

#include <math.h>

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

#define TILE 64       /* keys weighed at once; a multiple of LANES */
#define BLOCK_ROWS 6  /* rows of a register block, and below how many vectors stand side by side in it */
#if (defined(__x86_64__) || defined(__i386__)) && LANES < 16
#define COLUMNS 2     /* 16 registers */
#else
#define COLUMNS 4     /* 32 */
#endif

/* Lanes of two vectors, chosen by constants. */
#if defined(__clang__)
#define PICK(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define PICK(a, b, ...) __builtin_shuffle(a, b, (ivector){__VA_ARGS__})
#endif
/* Blocks of `step` lanes: of each pair of neighbours LOW takes the first, HIGH the second, by turns of a and of b. */
#define LOW(lane, step) ((lane) / (step) % 2 ? LANES + (lane) - (step) : (lane))
#define HIGH(lane, step) ((lane) / (step) % 2 ? LANES + (lane) : (lane) + (step))
#define FOUR(SIDE, lane, step) SIDE(lane, step), SIDE(lane + 1, step), SIDE(lane + 2, step), SIDE(lane + 3, step)
#if LANES == 16
#define ALL(SIDE, step) FOUR(SIDE, 0, step), FOUR(SIDE, 4, step), FOUR(SIDE, 8, step), FOUR(SIDE, 12, step)
#elif LANES == 8
#define ALL(SIDE, step) FOUR(SIDE, 0, step), FOUR(SIDE, 4, step)
#else
#define ALL(SIDE, step) FOUR(SIDE, 0, step)
#endif

/* What products are made of (elements.h): pairs of bfloat16 where there is an instruction for them, else floats. */
#if defined(__AVX512BF16__)
#define PAIRS(type) (type)
#else
#define PAIRS(type) 0
#endif
#define FEW_ROWS 8 /* up to as many, or 2 of pairs, laying out keys costs more than it saves */
#define FEW(type) (PAIRS(type) ? 2 : FEW_ROWS)

/* The rows of an item for one key head: each query head of each packed row is one. Rows after the last one hold anything. */
typedef struct {
    int count;
    int query_words;        /* of a row, and */
    int width;              /* floats of a row of results: multiples of LANES */
    uint32_t *queries;      /* [rows, query_words], padded with 0 */
    float *results;         /* [rows, width]: weights x values so far */
    float *sums;            /* [rows, LANES]: sums of weights, by lane */
    float *maxima;          /* [rows]: weights are powers of 2 of scores less this */
    int32_t *positions;     /* [rows] */
    uint32_t *weights;      /* [FEW_ROWS, words of TILE] */
    float *scores;          /* [FEW_ROWS, TILE] */
    uint32_t *key_tile;     /* [words of size, TILE] */
    uint32_t *value_tile;   /* [words of TILE, width] */
} Rows;

typedef struct {
    int from, to; /* keys; none where `to` is not above `from` */
} Range;

/* The part of keys start ... start+count-1 of an item that a row at `position` may see, counted from `start`. */
static inline Range visible(const Attention *call, const Item *item, int position, int start, int count) {
    int own = position - item->position - start;
    int first = call->window ? own - call->window + 1 : 0;
    return (Range){first > 0 ? first : 0, own < count ? own + 1 : count};
}

static inline uvector repeat(uint32_t word) { return (uvector){0} + word; }

/* What some row of `count` sees of a tile; `whole` says whether all of them see all. */
static inline Range seen_by_some(const Attention *call, const Item *item, const int32_t *positions, int rows, int start, int count,
                                 int *whole) {
    int least = positions[0], most = positions[0];
    for (int row = 1; row < rows; row++) {
        if (positions[row] < least) least = positions[row];
        if (positions[row] > most) most = positions[row];
    }
    Range low = visible(call, item, least, start, count), high = visible(call, item, most, start, count);
    *whole = low.to == TILE && high.from == 0;
    return (Range){low.from, high.to};
}

/* `left` elements of bfloat16, at most `room`, as bits; the rest is 0. */
static inline void copy_halves(uint16_t *to, int room, const void *base, int64_t offset, int left) {
    memset(to, 0, (size_t)room * 2);
    memcpy(to, (const uint16_t *)base + offset, (size_t)left * 2);
}

/* LANES elements as floats, of which those after `left` are 0. */
static inline vector load_some(const void *base, int64_t offset, int left, int type) {
    if (left >= LANES) return load(base, offset, type);
    if (type) {
        uint16_t some[LANES];
        copy_halves(some, LANES, base, offset, left);
        return load(some, 0, 1);
    }
    float some[LANES] = {0};
    memcpy(some, (const float *)base + offset, (size_t)left * 4);
    return *(const vector *)some;
}

/* The next LANES words of a row along its elements, of which `left` (above 0) are left; what is missing is 0. */
static inline uvector load_words(const void *base, int64_t offset, int left, int type) {
    if (!PAIRS(type)) return (uvector)load_some(base, offset, left, type);
    if (left >= 2 * LANES) { /* an odd offset is no place for a word */
        uvector whole;
        memcpy(&whole, (const uint16_t *)base + offset, sizeof whole);
        return whole;
    }
#if LANES == 16 && defined(__AVX512BW__)
    return (uvector)_mm512_maskz_loadu_epi16((1u << left) - 1, (const uint16_t *)base + offset);
#else
    uint16_t some[2 * LANES];
    copy_halves(some, 2 * LANES, base, offset, left);
    return *(const uvector *)some;
#endif
}

/* LANES words of the elements of two neighbouring keys at `first` and `second`, either of which may be missing (below 0: zeros), or of
 * floats of the first; `at` is where in their rows. */
static inline __attribute__((always_inline)) uvector load_neighbours(const void *base, int64_t first, int64_t second, int at,
                                                                     int left, int type) {
    if (!PAIRS(type)) return (uvector)load_some(base, first + at, left, type);
    uvector word = repeat(0);
    if (first >= 0) word = (uvector)load_some(base, first + at, left, 1) >> 16;
    if (second >= 0) word |= (uvector)load_some(base, second + at, left, 1);
    return word;
}

/* results += weights x values of one row for the keys that it sees, read where they lie. A key that it does not see must not be
 * multiplied by its weight, 0: it may hold NaN or infinity. */
static void mix_exactly(const Attention *call, const int64_t *pages, int64_t head, Range seen, const void *weights, float *results) {
    int64_t step = (int64_t)call->key_heads * call->size;
    for (int key = seen.from; key < seen.to; key++) {
        float weight = get(weights, key, PAIRS(call->type));
        for (int at = 0; at < call->size; at += LANES)
            *(vector *)(results + at) += weight * load_some(call->values, pages[key] * step + head + at, call->size - at,
                                                            call->type);
    }
}

/* Pages lie anywhere: ask for those of keys before they are needed. */
static inline void expect(const void *base, int64_t offset, int size, int type) {
    const char *from = (const char *)base + offset * (type ? 2 : 4);
    for (int at = 0; at < size * (type ? 2 : 4); at += 64) __builtin_prefetch(from + at);
}
#endif
