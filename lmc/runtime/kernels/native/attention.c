/* Causal attention of packed queries over paged keys and values, on any CPU: plain C11, GCC/Clang vector types, POSIX threads.
 *
 * The plan (made once a step, used by every layer) is a list of items. An item is a run of consecutive key positions read
 * by a block of query rows; several rows that share a prefix read it in one item. Each item writes, for every row and head,
 * the running maximum, the sum and the unnormalized result over its keys; a second phase merges the items of a row by their
 * log-sum-exp (FlashDecoding, Dao et al. 2023; Cascade inference, Ye et al. 2024).
 * All arithmetic is float.
 */
#include "elements.h"
#include "pool.h"

#include <math.h>

#if LANES == 8
#define COLUMNS 2 /* vectors side by side in a register block */
#else
#define COLUMNS 4
#endif
#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define HAVE_SHUFFLE
#endif
#endif
#define BLOCK_ROWS 4
#define TILE 64 /* keys held in the tile at once; a multiple of LANES * COLUMNS */
#define FEW_ROWS 8 /* up to as many query rows, dot products beat transposing the keys */

typedef struct {
    int64_t first_key;   /* offset into `pages` */
    int32_t keys;        /* how many keys */
    int32_t position;    /* position of the first key in its sequence */
    int32_t first_row;   /* offset into `item_rows` */
    int32_t rows;        /* how many query rows */
} Item;

typedef struct {
    const void *query;          /* [T, heads, size] */
    const void *keys;           /* [pages, key_heads, size] */
    const void *values;
    void *result;               /* [T, heads, size] */
    const int64_t *pages;
    const Item *items;
    const int32_t *item_rows;   /* packed row numbers; the index of an entry is the number of its partial result */
    const int32_t *positions;   /* [T] position of each packed row */
    const int32_t *row_starts;  /* [T + 1] into row_partials */
    const int32_t *row_partials;
    float *partials;            /* [entries of item_rows, heads, size + 2] scratch */
    int64_t item_count;
    int64_t row_count;
    int32_t heads, key_heads, size, type;
    int32_t window;             /* a row sees the last `window` positions, its own included; 0: all */
    float scale, softcap;       /* softcap 0: none */
    char *scratch;              /* per thread */
    int64_t scratch_bytes;
} Call;

static float exponential_one(float x) { return exponential(broadcast(x))[0]; }

typedef struct {
    int from, to; /* keys; none where `to` is not above `from` */
} Range;

/* The part of keys start … start+count-1 of an item that a row may see, counted from `start`. */
static inline Range visible(const Call *call, const Item *item, int row, int start, int count) {
    int position = call->positions[row] - item->position - start;
    int first = call->window ? position - call->window + 1 : 0;
    return (Range){first > 0 ? first : 0, position < count ? position + 1 : count};
}

/* The keys that all of some rows see. */
static inline Range common(const Range *ranges, int rows) {
    Range shared = ranges[0];
    for (int row = 1; row < rows; row++) {
        if (ranges[row].from > shared.from) shared.from = ranges[row].from;
        if (ranges[row].to < shared.to) shared.to = ranges[row].to;
    }
    return shared;
}

/* How many of `rows` rows are in a block. */
static inline int block_rows(int rows, int block) {
    return rows - block * BLOCK_ROWS < BLOCK_ROWS ? rows - block * BLOCK_ROWS : BLOCK_ROWS;
}

/* What one row sees before and after the keys of its block. A key that a row does not see must not be multiplied by the
 * row's weight, 0: it may hold NaN or infinity. */
static inline Range before(Range own, Range shared) {
    return shared.from < shared.to ? (Range){own.from, shared.from} : own;
}

static inline Range after(Range own, Range shared) {
    return shared.from < shared.to ? (Range){shared.to, own.to} : (Range){0, 0};
}

/* Turns the scores [count] of one row into weights, updates its running maximum and sum; returns what to scale the old
 * result by. Keys that it does not see get weight 0; `count` is padded up to LANES with anything. */
static float weigh(const Call *call, float *scores, int count, Range seen, float *maximum, float *sum) {
    if (call->softcap > 0)
        for (int key = 0; key < count; key++) scores[key] = call->softcap * tanhf(scores[key] / call->softcap);
    int padded = (count + LANES - 1) / LANES * LANES;
    for (int key = 0; key < seen.from && key < padded; key++) scores[key] = -INFINITY;
    for (int key = seen.to > 0 ? seen.to : 0; key < padded; key++) scores[key] = -INFINITY;
    vector most = broadcast(*maximum);
    for (int key = 0; key < padded; key += LANES) {
        vector own = *(vector *)(scores + key);
        ivector more = own > most;
        most = choose(more | (own != own), own, most); /* NaN must reach the result */
    }
    float highest = most[0];
    for (int lane = 1; lane < LANES; lane++)
        if (most[lane] > highest || most[lane] != most[lane]) highest = most[lane];
    if (highest == -INFINITY) {
        memset(scores, 0, (size_t)padded * 4);
        return 1.0f;
    }
    float keep = *maximum == -INFINITY ? 0.0f : exponential_one(*maximum - highest);
    if (highest != highest || highest == INFINITY) keep = highest = NAN;
    vector sums = broadcast(0);
    for (int key = 0; key < padded; key += LANES) {
        vector own = *(vector *)(scores + key) - highest;
        vector weight = highest != highest ? own : exponential(own);
        *(vector *)(scores + key) = weight;
        sums += weight;
    }
    *sum = *sum * keep + total(sums);
    *maximum = highest;
    return keep;
}

/* Sums of LANES vectors: lane i of the result is the sum of values[i]. Halves are added in a tree. */
static inline vector totals(const vector *values) {
#if LANES == 16 && defined(HAVE_SHUFFLE)
    vector eights[8], fours[4], twos[2];
    for (int at = 0; at < 8; at++) {
        vector a = values[at], b = values[at + 8];
        eights[at] = __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23)
                     + __builtin_shufflevector(a, b, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
    }
    for (int at = 0; at < 4; at++) { /* lanes: 4 of each of at, at + 4, at + 8, at + 12 */
        vector a = eights[at], b = eights[at + 4];
        fours[at] = __builtin_shufflevector(a, b, 0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27)
                    + __builtin_shufflevector(a, b, 4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31);
    }
    for (int at = 0; at < 2; at++) {
        vector a = fours[at], b = fours[at + 2];
        twos[at] = __builtin_shufflevector(a, b, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29)
                   + __builtin_shufflevector(a, b, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
    }
    vector a = twos[0], b = twos[1];
    return __builtin_shufflevector(a, b, 0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30)
           + __builtin_shufflevector(a, b, 1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31);
#else
    vector result;
    for (int lane = 0; lane < LANES; lane++) result[lane] = total(values[lane]);
    return result;
#endif
}

/* Pages lie anywhere: ask for those of the keys after this one. */
static inline void expect(const void *base, int64_t offset, int size, int type) {
    const char *from = (const char *)base + offset * (type ? 2 : 4);
    for (int at = 0; at < size * (type ? 2 : 4); at += 64) __builtin_prefetch(from + at);
}

/* Scores of up to LANES keys for all rows: dot products, key by key, of which LANES are summed up at once. */
static inline __attribute__((always_inline)) void few_scores(const Call *call, const int64_t *pages, int count, int64_t step,
                                                             int64_t head, const float *query, int width, int rows,
                                                             float *scores, int size, int type) {
    vector sums[FEW_ROWS][LANES];
    for (int key = 0; key < count; key++) {
        int64_t place = pages[key] * step + head;
        for (int row = 0; row < rows; row++) sums[row][key] = broadcast(0);
        for (int at = 0; at + LANES <= size; at += LANES) {
            vector value = load(call->keys, place + at, type);
            for (int row = 0; row < rows; row++) sums[row][key] += value * *(const vector *)(query + row * width + at);
        }
        for (int at = size / LANES * LANES; at < size; at++)
            for (int row = 0; row < rows; row++)
                sums[row][key][0] += query[row * width + at] * get(call->keys, place + at, type);
    }
    for (int key = count; key < LANES; key++)
        for (int row = 0; row < rows; row++) sums[row][key] = broadcast(0);
    for (int row = 0; row < rows; row++) *(vector *)(scores + row * TILE) = totals(sums[row]);
}

/* results += weights x values of some keys, for up to BLOCK_ROWS rows (a constant) and one register block of columns. */
static inline __attribute__((always_inline)) void few_mix(const Call *call, const int64_t *pages, Range keys, int64_t step,
                                                          int64_t place, const float *weights, float *results, int width,
                                                          int rows, int type) {
    if (keys.from >= keys.to) return;
    vector sums[BLOCK_ROWS][COLUMNS];
    for (int row = 0; row < rows; row++)
        for (int column = 0; column < COLUMNS; column++)
            sums[row][column] = *(vector *)(results + row * width + column * LANES);
    for (int key = keys.from; key < keys.to; key++) {
        vector values[COLUMNS];
        int64_t from = pages[key] * step + place;
        for (int column = 0; column < COLUMNS; column++) values[column] = load(call->values, from + column * LANES, type);
        for (int row = 0; row < rows; row++)
            for (int column = 0; column < COLUMNS; column++) sums[row][column] += values[column] * weights[row * TILE + key];
    }
    for (int row = 0; row < rows; row++)
        for (int column = 0; column < COLUMNS; column++)
            *(vector *)(results + row * width + column * LANES) = sums[row][column];
}

/* Few rows: no transposing, keys and values are used where they lie. Rows are padded to BLOCK_ROWS. */
static inline __attribute__((always_inline)) void few_body(const Call *call, const Item *item, int key_head, float *query,
                                                           float *scores, float *results, float *maxima, float *sums, int rows,
                                                           int width, int size, int type) {
    int repeats = call->heads / call->key_heads, blocks = (rows + BLOCK_ROWS - 1) / BLOCK_ROWS;
    int64_t step = (int64_t)call->key_heads * size, head = (int64_t)key_head * size;
    memset(scores, 0, (size_t)blocks * BLOCK_ROWS * TILE * 4);
    for (int start = 0; start < item->keys; start += TILE) {
        int count = item->keys - start < TILE ? item->keys - start : TILE;
        const int64_t *pages = call->pages + item->first_key + start;
        int known = item->keys - start;
        for (int key = 0; key < count; key += LANES) {
            for (int next = key + LANES; next < key + 2 * LANES && next < known; next++)
                expect(call->keys, pages[next] * step + head, size, type);
            for (int own = key; own < key + LANES && own < known; own++)
                expect(call->values, pages[own] * step + head, size, type);
            int some = count - key < LANES ? count - key : LANES;
            few_scores(call, pages + key, some, step, head, query, width, rows, scores + key, size, type);
        }
        Range seen[FEW_ROWS], shared[FEW_ROWS / BLOCK_ROWS];
        for (int row = 0; row < rows; row++) {
            seen[row] = visible(call, item, call->item_rows[item->first_row + row / repeats], start, count);
            float keep = weigh(call, scores + row * TILE, count, seen[row], maxima + row, sums + row);
            if (keep != 1.0f)
                for (int at = 0; at < width; at++) results[row * width + at] *= keep;
        }
        for (int block = 0; block < blocks; block++)
            shared[block] = common(seen + block * BLOCK_ROWS, block_rows(rows, block));
        int at = 0;
        for (; at + LANES * COLUMNS <= size; at += LANES * COLUMNS)
            for (int block = 0; block < blocks; block++) {
                int first = block * BLOCK_ROWS, last = first + block_rows(rows, block);
                for (int row = first; row < last; row++)
                    few_mix(call, pages, before(seen[row], shared[block]), step, head + at, scores + row * TILE,
                            results + row * width + at, width, 1, type);
                few_mix(call, pages, shared[block], step, head + at, scores + first * TILE, results + first * width + at,
                        width, BLOCK_ROWS, type);
                for (int row = first; row < last; row++)
                    few_mix(call, pages, after(seen[row], shared[block]), step, head + at, scores + row * TILE,
                            results + row * width + at, width, 1, type);
            }
        for (; at < size; at++)
            for (int row = 0; row < rows; row++)
                for (int key = seen[row].from; key < seen[row].to; key++)
                    results[row * width + at] += scores[row * TILE + key]
                                                 * get(call->values, pages[key] * step + head + at, type);
    }
}

static void attend_few(const Call *call, const Item *item, int key_head, float *query, float *scores, float *results,
                       float *maxima, float *sums, int rows, int width) {
#define CASE(SIZE, TYPE) few_body(call, item, key_head, query, scores, results, maxima, sums, rows, width, SIZE, TYPE)
    if (call->size == 64 && call->type == 1) CASE(64, 1);
    else if (call->size == 128 && call->type == 1) CASE(128, 1);
    else if (call->size == 64) CASE(64, 0);
    else if (call->size == 128) CASE(128, 0);
    else CASE(call->size, call->type);
#undef CASE
}

/* c[rows, LANES * COLUMNS] += a[rows, depth] b[depth, ...]; `rows`: a constant up to BLOCK_ROWS; strides in floats. */
static inline __attribute__((always_inline)) void multiply_rows(const float *a, int64_t a_step, const float *b, int64_t b_step,
                                                                float *c, int64_t c_step, int depth, int rows) {
    if (depth <= 0) return;
    vector sums[BLOCK_ROWS][COLUMNS];
    for (int row = 0; row < rows; row++)
        for (int column = 0; column < COLUMNS; column++) sums[row][column] = *(vector *)(c + row * c_step + column * LANES);
    for (int at = 0; at < depth; at++) {
        vector right[COLUMNS];
        for (int column = 0; column < COLUMNS; column++) right[column] = *(const vector *)(b + at * b_step + column * LANES);
        for (int row = 0; row < rows; row++) {
            float left = a[row * a_step + at];
            for (int column = 0; column < COLUMNS; column++) sums[row][column] += right[column] * left;
        }
    }
    for (int row = 0; row < rows; row++)
        for (int column = 0; column < COLUMNS; column++) *(vector *)(c + row * c_step + column * LANES) = sums[row][column];
}

static void multiply_block(const float *a, int64_t a_step, const float *b, int64_t b_step, float *c, int64_t c_step,
                           int depth) {
    multiply_rows(a, a_step, b, b_step, c, c_step, depth, BLOCK_ROWS);
}

/* The same for the keys in a range: weights [rows, TILE], values [TILE, width], results [rows, width]. */
static void mix_block(const float *weights, const float *values, float *results, int width, Range keys) {
    multiply_rows(weights + keys.from, TILE, values + (int64_t)keys.from * width, width, results, width,
                  keys.to - keys.from, BLOCK_ROWS);
}

static void mix_row(const float *weights, const float *values, float *results, int width, Range keys) {
    multiply_rows(weights + keys.from, TILE, values + (int64_t)keys.from * width, width, results, width,
                  keys.to - keys.from, 1);
}

/* results += weights x values for a block of rows, of which each sees a range of the keys. */
static void mix_seen(const float *weights, const float *values, float *results, int width, const Range *seen, int rows) {
    Range shared = common(seen, rows);
    for (int column = 0; column < width; column += LANES * COLUMNS) {
        const float *side = values + column;
        float *to = results + column;
        for (int row = 0; row < rows; row++)
            mix_row(weights + row * TILE, side, to + (int64_t)row * width, width, before(seen[row], shared));
        mix_block(weights, side, to, width, shared);
        for (int row = 0; row < rows; row++)
            mix_row(weights + row * TILE, side, to + (int64_t)row * width, width, after(seen[row], shared));
    }
}

/* Many rows: keys are transposed into a tile that all rows use. `width` is a multiple of LANES * COLUMNS, rows of BLOCK_ROWS. */
static void attend_many(const Call *call, const Item *item, int key_head, float *query, float *scores, float *results,
                        float *maxima, float *sums, Range *seen, int rows, int width, float *key_tile,
                        float *value_tile) {
    int repeats = call->heads / call->key_heads, type = call->type, size = call->size;
    int64_t step = (int64_t)call->key_heads * size, head = (int64_t)key_head * size;
    int blocks = (rows + BLOCK_ROWS - 1) / BLOCK_ROWS;
    memset(value_tile, 0, (size_t)TILE * width * 4);
    for (int start = 0; start < item->keys; start += TILE) {
        int count = item->keys - start < TILE ? item->keys - start : TILE;
        int padded = (count + LANES * COLUMNS - 1) / (LANES * COLUMNS) * (LANES * COLUMNS);
        const int64_t *pages = call->pages + item->first_key + start;
        for (int key = 0; key < padded; key++) {
            if (key >= count) {
                for (int at = 0; at < size; at++) key_tile[at * TILE + key] = 0;
                memset(value_tile + (int64_t)key * width, 0, (size_t)width * 4);
                continue;
            }
            int64_t place = pages[key] * step + head;
            float *value = value_tile + (int64_t)key * width;
            if (type) {
                const uint16_t *k = (const uint16_t *)call->keys + place, *v = (const uint16_t *)call->values + place;
                for (int at = 0; at < size; at++) key_tile[at * TILE + key] = from_half(k[at]);
                for (int at = 0; at < size; at++) value[at] = from_half(v[at]);
            } else {
                const float *k = (const float *)call->keys + place, *v = (const float *)call->values + place;
                for (int at = 0; at < size; at++) key_tile[at * TILE + key] = k[at];
                memcpy(value, v, (size_t)size * 4);
            }
        }
        memset(scores, 0, (size_t)blocks * BLOCK_ROWS * TILE * 4);
        for (int column = 0; column < padded; column += LANES * COLUMNS)
            for (int block = 0; block < blocks; block++)
                multiply_block(query + (int64_t)block * BLOCK_ROWS * width, width, key_tile + column, TILE,
                               scores + (int64_t)block * BLOCK_ROWS * TILE + column, TILE, size);
        for (int row = 0; row < rows; row++) {
            seen[row] = visible(call, item, call->item_rows[item->first_row + row / repeats], start, count);
            float keep = weigh(call, scores + (int64_t)row * TILE, count, seen[row], maxima + row, sums + row);
            if (keep != 1.0f)
                for (int at = 0; at < width; at++) results[(int64_t)row * width + at] *= keep;
        }
        for (int block = 0; block < blocks; block++)
            mix_seen(scores + (int64_t)block * BLOCK_ROWS * TILE, value_tile, results + (int64_t)block * BLOCK_ROWS * width,
                     width, seen + block * BLOCK_ROWS, block_rows(rows, block));
    }
}

/* One item and key head: `index` is item * key_heads + key head. */
static void attend_item(void *argument, int64_t index, int thread) {
    const Call *call = argument;
    const Item *item = call->items + index / call->key_heads;
    int key_head = (int)(index % call->key_heads), repeats = call->heads / call->key_heads, size = call->size;
    int step = LANES * COLUMNS, width = (size + step - 1) / step * step;
    int rows = item->rows * repeats, padded = (rows + BLOCK_ROWS - 1) / BLOCK_ROWS * BLOCK_ROWS;
    float *query = (float *)(call->scratch + thread * call->scratch_bytes);
    float *results = query + (int64_t)padded * width;
    float *scores = results + (int64_t)padded * width;
    float *maxima = scores + (int64_t)padded * TILE, *sums = maxima + padded;
    Range *seen = (Range *)(sums + padded);
    float *key_tile = sums + 3 * padded, *value_tile = key_tile + (int64_t)width * TILE;
    memset(query, 0, (size_t)padded * width * 8); /* queries and results */
    for (int row = 0; row < rows; row++) {
        int64_t place = ((int64_t)call->item_rows[item->first_row + row / repeats] * call->heads + key_head * repeats
                         + row % repeats) * size;
        for (int at = 0; at < size; at++)
            query[(int64_t)row * width + at] = call->scale * get(call->query, place + at, call->type);
        maxima[row] = -INFINITY;
        sums[row] = 0;
    }
    if (rows <= FEW_ROWS)
        attend_few(call, item, key_head, query, scores, results, maxima, sums, rows, width);
    else
        attend_many(call, item, key_head, query, scores, results, maxima, sums, seen, rows, width, key_tile, value_tile);
    for (int row = 0; row < rows; row++) {
        int64_t entry = (int64_t)(item->first_row + row / repeats) * call->heads + key_head * repeats + row % repeats;
        float *partial = call->partials + entry * (size + 2);
        memcpy(partial, results + (int64_t)row * width, (size_t)size * 4);
        partial[size] = maxima[row];
        partial[size + 1] = sums[row];
    }
}

/* Merge the partial results of one packed row. */
static void merge_row(void *argument, int64_t row, int thread) {
    (void)thread;
    const Call *call = argument;
    int size = call->size;
    const int32_t *partials = call->row_partials + call->row_starts[row];
    int count = call->row_starts[row + 1] - call->row_starts[row];
    for (int head = 0; head < call->heads; head++) {
        float highest = -INFINITY, sum = 0, merged[size];
        memset(merged, 0, sizeof merged);
        for (int part = 0; part < count; part++) {
            float own = call->partials[((int64_t)partials[part] * call->heads + head) * (size + 2) + size];
            if (own > highest || own != own) highest = own;
        }
        for (int part = 0; part < count; part++) {
            const float *partial = call->partials + ((int64_t)partials[part] * call->heads + head) * (size + 2);
            if (partial[size] == -INFINITY) continue;
            float factor = expf(partial[size] - highest);
            sum += partial[size + 1] * factor;
            for (int at = 0; at < size; at++) merged[at] += partial[at] * factor;
        }
        int64_t place = (row * call->heads + head) * size;
        for (int at = 0; at < size; at++) put(call->result, place + at, call->type, merged[at] / sum);
    }
}

/* Bytes of scratch one thread needs for items of up to `rows` query rows. */
int64_t lmc_attention_scratch(int32_t rows, int32_t heads, int32_t key_heads, int32_t size) {
    int step = LANES * COLUMNS, width = (size + step - 1) / step * step;
    int64_t padded = ((int64_t)rows * (heads / key_heads) + BLOCK_ROWS - 1) / BLOCK_ROWS * BLOCK_ROWS;
    int64_t floats = padded * (2 * width + TILE + 4) + 2 * (int64_t)width * TILE;
    return (floats * 4 + 127) / 64 * 64;
}

void lmc_attention(const Call *call, int32_t threads) {
    pool_run(attend_item, (void *)call, call->item_count * call->key_heads, threads);
    pool_run(merge_row, (void *)call, call->row_count, threads);
}
