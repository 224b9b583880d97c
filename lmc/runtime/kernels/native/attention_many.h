/* Attention of many rows to the keys of an item: keys and values are laid out anew once per tile, for all rows. */
#ifndef LMC_ATTENTION_MANY_H
#define LMC_ATTENTION_MANY_H
#include "attention_weights.h"

/* After steps 1, 2, 4 ... LANES / 2 a square is transposed. */
#define EXCHANGE(STEP) \
    for (int at = 0; at < LANES; at++) { \
        if (at & (STEP)) continue; \
        uvector a = square[at], b = square[at + (STEP)]; \
        square[at] = PICK(a, b, ALL(LOW, STEP)); \
        square[at + (STEP)] = PICK(a, b, ALL(HIGH, STEP)); \
    }

static inline __attribute__((always_inline)) void transpose(uvector *square) {
    EXCHANGE(1)
    EXCHANGE(2)
#if LANES > 4
    EXCHANGE(4)
#endif
#if LANES > 8
    EXCHANGE(8)
#endif
}

/* A square of words of keys from their element `at`, of which `left` are left in each. Beyond `count` the last one is repeated:
 * nobody looks at its scores. */
static inline __attribute__((always_inline)) void pack_square(const Attention *call, const int64_t *pages, int first, int count,
                                                              int64_t place, int left, uint32_t *to, int type) {
    int64_t step = (int64_t)call->key_heads * call->size;
    uvector square[LANES];
    for (int at = 0; at < LANES; at++)
        square[at] = load_words(call->keys, pages[first + at < count ? first + at : count - 1] * step + place, left, type);
    transpose(square);
    for (int at = 0; at < LANES; at++) *(uvector *)(to + at * TILE + first) = square[at];
}

/* Lays out `count` keys: a word of each, side by side, under the next. */
static inline __attribute__((always_inline)) void pack_keys(const Attention *call, const Rows *rows, const int64_t *pages, int count,
                                                            int64_t head, int size, int type) {
    int each = PAIRS(type) ? 2 : 1;
    for (int first = 0; first < count; first += LANES) {
        int at = 0;
        for (; at + LANES * each <= size; at += LANES * each)
            pack_square(call, pages, first, count, head + at, LANES * each, rows->key_tile + at / each * TILE, type);
        if (at < size) pack_square(call, pages, first, count, head + at, size - at, rows->key_tile + at / each * TILE, type);
    }
}

/* Lays out `count` values: words of neighbouring keys, side by side along the columns. Returns whether all are finite. */
static inline __attribute__((always_inline)) int pack_values(const Attention *call, const Rows *rows, const int64_t *pages, int count,
                                                             int64_t head, int size, int type) {
    const uint32_t exponents = PAIRS(type) ? 0x7f807f80u : 0x7f800000u, least = PAIRS(type) ? 0x00800080u : 0x00800000u;
    int64_t step = (int64_t)call->key_heads * size;
    int each = PAIRS(type) ? 2 : 1;
    uvector found = repeat(0);
    for (int key = 0; key < count; key += each) {
        int64_t first = pages[key] * step + head, second = key + 1 < count ? pages[key + 1] * step + head : -1;
        uint32_t *to = rows->value_tile + key / each * rows->width;
        int at = 0;
        for (; at + LANES <= size; at += LANES) {
            uvector word = load_neighbours(call->values, first, second, at, LANES, type);
            found |= (word & exponents) + least; /* the sign is set where an exponent was all ones */
            *(uvector *)(to + at) = word;
        }
        if (at == size) continue;
        uvector word = load_neighbours(call->values, first, second, at, size - at, type);
        found |= (word & exponents) + least;
        *(uvector *)(to + at) = word;
    }
    return !any((ivector)(found & (least << 8)));
}

/* c[rows, columns x LANES] = a[rows, depth] b[depth, ...], added to what is there unless `fresh`; a, b: words; `rows`, `columns`,
 * `type` are constants. */
static inline __attribute__((always_inline)) void multiply(const uint32_t *a, int64_t a_step, const uint32_t *b, int64_t b_step,
                                                           float *c, int64_t c_step, int depth, int fresh, int rows, int columns,
                                                           int type) {
    vector sums[BLOCK_ROWS][COLUMNS];
    for (int row = 0; row < rows; row++)
        for (int column = 0; column < columns; column++)
            sums[row][column] = fresh ? broadcast(0) : *(vector *)(c + row * c_step + column * LANES);
    for (int at = 0; at < depth; at++) {
        uvector right[COLUMNS];
        for (int column = 0; column < columns; column++) right[column] = *(const uvector *)(b + at * b_step + column * LANES);
        for (int row = 0; row < rows; row++) {
            uvector left = repeat(a[row * a_step + at]);
            for (int column = 0; column < columns; column++)
                sums[row][column] = multiply_add(sums[row][column], left, right[column], type);
        }
    }
    for (int row = 0; row < rows; row++)
        for (int column = 0; column < columns; column++) *(vector *)(c + row * c_step + column * LANES) = sums[row][column];
}

/* Any columns, a multiple of LANES; few rows or many: `rows` is 4 to BLOCK_ROWS, a variable. */
static inline __attribute__((always_inline)) void multiply_columns(const uint32_t *a, int64_t a_step, const uint32_t *b,
                                                                   int64_t b_step, float *c, int64_t c_step, int depth, int fresh,
                                                                   int rows, int columns, int type) {
#define CASE(ROWS, SIDE) multiply(a, a_step, b + at, b_step, c + at, c_step, depth, fresh, ROWS, SIDE, type)
#define ROW_CASES(SIDE) \
    do { \
        if (rows == 6) CASE(6, SIDE); \
        else if (rows == 5) CASE(5, SIDE); \
        else CASE(4, SIDE); \
    } while (0)
    int at = 0;
    for (; at + COLUMNS * LANES <= columns; at += COLUMNS * LANES) ROW_CASES(COLUMNS);
#if COLUMNS > 2
    for (; at + 2 * LANES <= columns; at += 2 * LANES) ROW_CASES(2);
#endif
    if (at < columns) ROW_CASES(1);
#undef ROW_CASES
#undef CASE
}

static __attribute__((noinline)) void multiply_floats(const uint32_t *a, int64_t a_step, const uint32_t *b, int64_t b_step,
                                                      float *c, int64_t c_step, int depth, int fresh, int rows, int columns) {
    multiply_columns(a, a_step, b, b_step, c, c_step, depth, fresh, rows, columns, 0);
}

static __attribute__((noinline)) void multiply_pairs(const uint32_t *a, int64_t a_step, const uint32_t *b, int64_t b_step,
                                                     float *c, int64_t c_step, int depth, int fresh, int rows, int columns) {
    multiply_columns(a, a_step, b, b_step, c, c_step, depth, fresh, rows, columns, 1);
}

/* How many rows a register block gets, so that blocks are as equal as can be: 4 to BLOCK_ROWS where there are more than 6. */
static inline int rows_together(int rows) {
    int blocks = (rows + BLOCK_ROWS - 1) / BLOCK_ROWS, each = (rows + blocks - 1) / blocks;
    return each < 4 ? 4 : each;
}

static inline __attribute__((always_inline)) void many_body(const Attention *call, const Item *item, const Rows *rows,
                                                            int64_t head, int size, int type) {
    int64_t step = (int64_t)call->key_heads * size;
    int together = rows_together(rows->count), pairs = PAIRS(type), weight_step = words(TILE, pairs);
    void (*multiply_block)(const uint32_t *, int64_t, const uint32_t *, int64_t, float *, int64_t, int, int, int, int)
        = pairs ? multiply_pairs : multiply_floats;
    void (*weigh_block)(const Attention *, const Item *, const Rows *, int, int, int, int, int) = pairs ? weigh_pairs : weigh_floats;
    for (int start = 0; start < item->keys; start += TILE) {
        int count = item->keys - start < TILE ? item->keys - start : TILE, whole;
        Range any_seen = seen_by_some(call, item, rows->positions, rows->count, start, count, &whole);
        if (any_seen.from >= any_seen.to) continue;
        const int64_t *pages = call->pages + item->first_key + start;
        pack_keys(call, rows, pages, count, head, size, type);
        int finite = pack_values(call, rows, pages, count, head, size, type);
        for (int key = count; key < item->keys - start && key < count + TILE; key++) {
            expect(call->keys, pages[key] * step + head, size, type);
            expect(call->values, pages[key] * step + head, size, type);
        }
        for (int row = 0; row < rows->count; row += together) {
            int own = rows->count - row < together ? rows->count - row : together;
            Range seen = seen_by_some(call, item, rows->positions + row, own, start, count, &whole);
            if (seen.from >= seen.to) continue;
            int padded = (seen.to + LANES - 1) / LANES * LANES;
            float *results = rows->results + (int64_t)row * rows->width;
            multiply_block(rows->queries + (int64_t)row * rows->query_words, rows->query_words, rows->key_tile, TILE, rows->scores,
                           TILE, words(size, pairs), 1, together, padded);
            weigh_block(call, item, rows, row, own, start, count, whole);
            if (finite || whole) {
                multiply_block(rows->weights, weight_step, rows->value_tile, rows->width, results, rows->width,
                               words(seen.to, pairs), 0, together, rows->width);
                continue;
            }
            for (int at = 0; at < own; at++)
                mix_exactly(call, pages, head, visible(call, item, rows->positions[row + at], start, count),
                            rows->weights + at * weight_step, results + at * rows->width);
        }
    }
}

static void attend_many(const Attention *call, const Item *item, const Rows *rows, int64_t head) {
    if (call->type && call->size == 64) many_body(call, item, rows, head, 64, 1);
    else if (call->type) many_body(call, item, rows, head, call->size, 1);
    else if (call->size == 64) many_body(call, item, rows, head, 64, 0);
    else many_body(call, item, rows, head, call->size, 0);
}
#endif
