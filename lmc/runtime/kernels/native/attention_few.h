/* Attention of few rows to the keys of an item: keys and values are used where they lie. */
#ifndef LMC_ATTENTION_FEW_H
#define LMC_ATTENTION_FEW_H
#include "attention_weights.h"

#define MIXED_ROWS 4 /* rows of a register block */

/* Sums of LANES vectors: lane i of the result is the sum of values[i]. Halves are added in a tree. */
static inline __attribute__((always_inline)) vector totals(const vector *values) {
    vector halves[LANES / 2];
#define HALVE(FROM, STEP) \
    for (int at = 0; at < (STEP); at++) { \
        vector a = FROM[at], b = FROM[at + (STEP)]; \
        halves[at] = PICK(a, b, ALL(LOW, STEP)) + PICK(a, b, ALL(HIGH, STEP)); \
    }
#if LANES == 16
    HALVE(values, 8)
    HALVE(halves, 4)
    HALVE(halves, 2)
#elif LANES == 8
    HALVE(values, 4)
    HALVE(halves, 2)
#else
    HALVE(values, 2)
#endif
    HALVE(halves, 1)
#undef HALVE
    return halves[0];
}

/* sums[row][0] of all rows: products with `vectors` (a constant up to 4) vectors of words from element `at` of the key at `place`,
 * of which `left` elements are left; added to what is there unless `at` is 0. */
static inline __attribute__((always_inline)) void few_products(const Attention *call, const Rows *rows, int64_t place, int at, int left,
                                                               vector (*sums)[LANES], int vectors, int type) {
    int each = PAIRS(type) ? 2 * LANES : LANES;
    uvector key[4];
    for (int part = 0; part < vectors; part++) key[part] = load_words(call->keys, place + at + part * each, left - part * each, type);
    for (int row = 0; row < rows->count; row++) {
        const uint32_t *query = rows->queries + row * rows->query_words + at * LANES / each;
        vector sum = at ? sums[row][0] : broadcast(0);
        for (int part = 0; part < vectors; part++)
            sum = multiply_add(sum, *(const uvector *)(query + part * LANES), key[part], PAIRS(type));
        sums[row][0] = sum;
    }
}

/* Scores of up to LANES keys for all rows: dot products, key by key, of which LANES are summed up at once. */
static inline __attribute__((always_inline)) void few_scores(const Attention *call, const Rows *rows, const int64_t *pages, int count,
                                                             int64_t head, float *scores, int size, int type) {
    int64_t step = (int64_t)call->key_heads * size;
    int each = PAIRS(type) ? 2 * LANES : LANES;
    vector sums[FEW_ROWS][LANES];
    for (int key = count; key < LANES; key++)
        for (int row = 0; row < rows->count; row++) sums[row][key] = broadcast(0);
    for (int key = 0; key < count; key++) {
        int64_t place = pages[key] * step + head;
        vector (*own)[LANES] = (vector (*)[LANES])(*sums + key);
        int at = 0;
        for (; at + 4 * each <= size; at += 4 * each) few_products(call, rows, place, at, 4 * each, own, 4, type);
        if (at + 2 * each <= size) {
            few_products(call, rows, place, at, 2 * each, own, 2, type);
            at += 2 * each;
        }
        if (at + each <= size) {
            few_products(call, rows, place, at, each, own, 1, type);
            at += each;
        }
        if (at < size) few_products(call, rows, place, at, size - at, own, 1, type);
    }
    for (int row = 0; row < rows->count; row++) *(vector *)(scores + row * TILE) = totals(sums[row]);
}

/* results += weights x values of the keys that all of `count` rows see; `count` and `columns` are constants. */
static inline __attribute__((always_inline)) void few_mix(const Attention *call, const int64_t *pages, Range seen, int64_t place,
                                                          int left, const uint32_t *weights, float *results, int width, int count,
                                                          int columns, int type) {
    int64_t step = (int64_t)call->key_heads * call->size;
    int each = PAIRS(type) ? 2 : 1;
    vector sums[MIXED_ROWS][COLUMNS];
    for (int row = 0; row < count; row++)
        for (int column = 0; column < columns; column++) sums[row][column] = *(vector *)(results + row * width + column * LANES);
    for (int key = seen.from / each * each; key < seen.to; key += each) {
        int64_t first = key < seen.from ? -1 : pages[key] * step + place;
        int64_t second = key + 1 < seen.to ? pages[key + 1] * step + place : -1;
        uvector values[COLUMNS];
        for (int column = 0; column < columns; column++)
            values[column] = load_neighbours(call->values, first, second, column * LANES, left - column * LANES, type);
        for (int row = 0; row < count; row++) {
            uvector weight = repeat(weights[row * words(TILE, PAIRS(type)) + key / each]);
            for (int column = 0; column < columns; column++)
                sums[row][column] = multiply_add(sums[row][column], weight, values[column], PAIRS(type));
        }
    }
    for (int row = 0; row < count; row++)
        for (int column = 0; column < columns; column++) *(vector *)(results + row * width + column * LANES) = sums[row][column];
}

/* The same for any number of rows and all columns. */
static inline __attribute__((always_inline)) void few_mix_all(const Attention *call, const Rows *rows, const int64_t *pages, Range seen,
                                                              int64_t head, int first, int count, int size, int type) {
#define CASE(COUNT, SIDE, LEFT) few_mix(call, pages, seen, head + at, LEFT, weights, results + at, rows->width, COUNT, SIDE, type)
#define ROW_CASES(SIDE, LEFT) \
    do { \
        if (count == 1) CASE(1, SIDE, LEFT); \
        else if (count == 2) CASE(2, SIDE, LEFT); \
        else if (FEW(type) > 2 && count == 3) CASE(3, SIDE, LEFT); \
        else if (FEW(type) > 2) CASE(4, SIDE, LEFT); \
    } while (0)
    for (; count > 0; first += MIXED_ROWS, count -= MIXED_ROWS) {
        const uint32_t *weights = rows->weights + first * words(TILE, PAIRS(type));
        float *results = rows->results + first * rows->width;
        int at = 0;
        for (; at + COLUMNS * LANES <= size; at += COLUMNS * LANES) ROW_CASES(COLUMNS, COLUMNS * LANES);
        for (; at + LANES <= size; at += LANES) ROW_CASES(1, LANES);
        if (at < size) ROW_CASES(1, size - at);
    }
#undef ROW_CASES
#undef CASE
}

static inline __attribute__((always_inline)) void few_body(const Attention *call, const Item *item, const Rows *rows, int64_t head,
                                                           int size, int type) {
    int repeats = call->heads / call->key_heads;
    int64_t step = (int64_t)call->key_heads * size;
    for (int start = 0; start < item->keys; start += TILE) {
        int count = item->keys - start < TILE ? item->keys - start : TILE, known = item->keys - start, whole;
        Range some = seen_by_some(call, item, rows->positions, rows->count, start, count, &whole);
        if (some.from >= some.to) continue;
        const int64_t *pages = call->pages + item->first_key + start;
        for (int key = 0; key < some.to; key += LANES) {
            for (int next = key + LANES; next < key + 2 * LANES && next < known; next++)
                expect(call->keys, pages[next] * step + head, size, type);
            for (int own = key; own < key + LANES && own < known; own++)
                expect(call->values, pages[own] * step + head, size, type);
            few_scores(call, rows, pages + key, count - key < LANES ? count - key : LANES, head, rows->scores + key, size, type);
        }
        if (PAIRS(type)) weigh_pairs(call, item, rows, 0, rows->count, start, count, whole);
        else weigh_floats(call, item, rows, 0, rows->count, start, count, whole);
        /* Heads of the same packed row see the same keys. */
        int alike = whole || rows->positions[0] == rows->positions[rows->count - 1] ? rows->count : repeats;
        for (int row = 0; row < rows->count; row += alike)
            few_mix_all(call, rows, pages, visible(call, item, rows->positions[row], start, count), head, row, alike, size, type);
    }
}

static void attend_few(const Attention *call, const Item *item, const Rows *rows, int64_t head) {
    if (call->type && call->size == 64) few_body(call, item, rows, head, 64, 1);
    else if (call->type && call->size == 128) few_body(call, item, rows, head, 128, 1);
    else if (call->type) few_body(call, item, rows, head, call->size, 1);
    else if (call->size == 64) few_body(call, item, rows, head, 64, 0);
    else if (call->size == 128) few_body(call, item, rows, head, 128, 0);
    else few_body(call, item, rows, head, call->size, 0);
}
#endif
