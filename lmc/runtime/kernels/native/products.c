/* Matrix products with weights packed for them: output[rows, out] = input[rows, in] x weight[out, in]^T + bias.
 *
 * Packed weights are panels of PANEL columns, each [words of in][PANEL] words (elements.h), so a panel is read from
 * beginning to end: by one row at the speed of memory, by many rows once per block of BLOCK_ROWS that stays in registers
 * (Goto and van de Geijn, "Anatomy of high-performance matrix multiplication", 2008). Gates and what they open lie side by side in a panel, so the gate is applied before anything is stored.
 */
#include "products.h"

#include "activations.h"
#include "pool.h"
#include "tiles.h"

#define PANEL 32
#define HALF (PANEL / 2)
#define COLUMNS 2 /* vectors side by side in a register block */
#if LANES == 16
#define BLOCK_ROWS 12
#else
#define BLOCK_ROWS 6
#endif
#define MOST_ROWS 96    /* of a piece of work */
#define DEPTH 1024      /* words summed up before the next block of rows comes: a panel's part stays in the second cache */
#define FLOATS_SUMMED 512 /* floats summed up one after the other: the error grows with their number, so parts are summed up apart */
#define NEAR 64        /* words of a column between what is used and what is asked for */
#define FEW_WEIGHTS 8192 /* words of a panel below which waking helpers does not pay */

typedef struct {
    const void *weight; /* [out, in] */
    uint32_t *packed;   /* lmc_packed_words(...) words */
    int32_t in, out, type, gated;
} Pack;

static int64_t panels_of(int out) { return (out + PANEL - 1) / PANEL; }

int64_t lmc_packed_words(int32_t in, int32_t out, int32_t type, int32_t gated) {
    /* Gates and what they open are padded apart. */
    return (gated ? (out / 2 + HALF - 1) / HALF : panels_of(out)) * PANEL * words(in, type);
}

/* The column of the weight that stands in a panel's column; -1: none, a column of zeros. */
static int64_t real_column(int64_t panel, int column, int out, int gated) {
    if (!gated) {
        int64_t real = panel * PANEL + column;
        return real < out ? real : -1;
    }
    int64_t real = panel * HALF + column % HALF;
    if (real >= out / 2) return -1;
    return column < HALF ? real : real + out / 2;
}

static void pack_panel(void *argument, int64_t panel, int thread) {
    (void)thread;
    const Pack *call = argument;
    int depth = words(call->in, call->type);
    uint32_t *packed = call->packed + panel * depth * PANEL;
    for (int column = 0; column < PANEL; column++) {
        int64_t real = real_column(panel, column, call->out, call->gated);
        for (int at = 0; at < depth; at++) packed[(int64_t)at * PANEL + column] = 0;
        if (real < 0) continue;
        const char *from = (const char *)call->weight + real * call->in * (call->type ? 2 : 4);
        for (int at = 0; at < depth; at++) memcpy(packed + (int64_t)at * PANEL + column, from + (int64_t)at * 4, 4);
    }
}

void lmc_pack(const Pack *call, int32_t threads) {
    int64_t panels = lmc_packed_words(call->in, call->out, call->type, call->gated) / PANEL / words(call->in, call->type);
    pool_run(pack_panel, (void *)call, panels, threads);
}

/* sums[rows, PANEL] (+)= input[rows, depth] x panel[depth, PANEL]; `rows` and `type` are constants. */
static inline __attribute__((always_inline)) void multiply(const uint32_t *input, int64_t step, const uint32_t *panel, int64_t ahead,
                                                           int depth, float *sums, int add, int rows, int type) {
    for (int column = 0; column < PANEL; column += COLUMNS * LANES) {
        vector own[BLOCK_ROWS][COLUMNS];
        for (int row = 0; row < rows; row++)
            for (int part = 0; part < COLUMNS; part++) own[row][part] = broadcast(0);
        for (int at = 0; at < depth; at++) {
            const uint32_t *place = panel + (int64_t)at * PANEL + column;
            uvector right[COLUMNS];
            __builtin_prefetch(place + ahead, 0, 2);
            __builtin_prefetch(place + ahead + COLUMNS * LANES / 2, 0, 2);
            for (int part = 0; part < COLUMNS; part++) right[part] = *(const uvector *)(place + part * LANES);
            for (int row = 0; row < rows; row++) {
                uvector left = (uvector){0} + input[row * step + at];
                for (int part = 0; part < COLUMNS; part++) own[row][part] = multiply_add(own[row][part], left, right[part], type);
            }
        }
        for (int row = 0; row < rows; row++)
            for (int part = 0; part < COLUMNS; part++) {
                vector *sum = (vector *)(sums + row * PANEL + column + part * LANES);
                if (add) own[row][part] += *sum;
                *sum = own[row][part];
            }
    }
}

static void multiply_block(const uint32_t *input, int64_t step, const uint32_t *panel, int64_t ahead, int depth, float *sums, int add,
                           int rows, int type) {
#define CASE(ROWS)                                                                  \
    case ROWS:                                                                      \
        if (type) multiply(input, step, panel, ahead, depth, sums, add, ROWS, 1);   \
        else multiply(input, step, panel, ahead, depth, sums, add, ROWS, 0);        \
        break;
    switch (rows) {
        CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6)
#if BLOCK_ROWS > 6
        CASE(7) CASE(8) CASE(9) CASE(10) CASE(11) CASE(12)
#endif
    }
#undef CASE
}

#if defined(HAVE_TILES)
enum { TILE = 16, LEAST_TILE_ROWS = 4 }; /* rows, and words of a row, of a tile; fewer rows are bound by memory anyway */
static int tiles_allowed;

__attribute__((constructor)) static void allow_tiles(void) { tiles_allowed = ask_for_tiles(); }

/* As `multiply` does, for up to 2 * TILE rows and a depth that is a multiple of TILE; tiles 0 to 3 hold the sums. */
static void multiply_tiled(const uint32_t *input, int64_t step, const uint32_t *panel, int64_t ahead, int depth, float *sums, int add,
                           int rows) {
    int above = rows < TILE ? rows : TILE, below = rows - above, line = TILE * 4;
    int shapes[8] = {above, above, below, below, above, below, TILE, TILE};
    int bytes[8] = {line, line, below ? line : 0, below ? line : 0, line, below ? line : 0, line, line};
    shape_tiles(shapes, bytes);
    float *under = sums + TILE * PANEL;
    if (add) {
        load_tile(0, sums, PANEL * 4);
        load_tile(1, sums + TILE, PANEL * 4);
    }
    if (add && below) {
        load_tile(2, under, PANEL * 4);
        load_tile(3, under + TILE, PANEL * 4);
    }
    for (int at = 0; at < depth; at += TILE) {
        const uint32_t *place = panel + (int64_t)at * PANEL;
        for (int line_of_two = 0; line_of_two < TILE; line_of_two++) {
            __builtin_prefetch(place + ahead + line_of_two * PANEL, 0, 2);
            __builtin_prefetch(place + ahead + line_of_two * PANEL + TILE, 0, 2);
        }
        load_tile(6, place, PANEL * 4);
        load_tile(7, place + TILE, PANEL * 4);
        load_tile(4, input + at, step * 4);
        multiply_tiles(0, 4, 6);
        multiply_tiles(1, 4, 7);
        if (!below) continue;
        load_tile(5, input + TILE * step + at, step * 4);
        multiply_tiles(2, 5, 6);
        multiply_tiles(3, 5, 7);
    }
    store_tile(0, sums, PANEL * 4);
    store_tile(1, sums + TILE, PANEL * 4);
    if (below) {
        store_tile(2, under, PANEL * 4);
        store_tile(3, under + TILE, PANEL * 4);
    }
    release_tiles();
}
#endif

/* Some rows of a piece, over a part of the depth. */
static void multiply_part(const Product *call, const uint32_t *input, int64_t step, const uint32_t *panel, int64_t ahead, int depth,
                          float *sums, int add, int rows) {
    int done = 0;
#if defined(HAVE_TILES)
    if (call->type && tiles_allowed && rows >= LEAST_TILE_ROWS && depth >= TILE) {
        done = depth / TILE * TILE;
        for (int row = 0; row < rows; row += 2 * TILE)
            multiply_tiled(input + row * step, step, panel, ahead, done, sums + row * PANEL, add,
                           rows - row < 2 * TILE ? rows - row : 2 * TILE);
        if (done == depth) return;
    }
#endif
    int blocks = (rows + BLOCK_ROWS - 1) / BLOCK_ROWS, summed = call->type ? DEPTH : FLOATS_SUMMED;
    for (int block = 0; block < blocks; block++) {
        int first = (int)((int64_t)rows * block / blocks), end = (int)((int64_t)rows * (block + 1) / blocks);
        for (int from = done; from < depth; from += summed)
            multiply_block(input + first * step + from, step, panel + (int64_t)from * PANEL, ahead,
                           depth - from < summed ? depth - from : summed, sums + first * PANEL, add || from, end - first, call->type);
    }
}

/* `count` columns of one row, from `column` of the output on. */
static void put_columns(const Product *call, int64_t row, int64_t column, const float *sums, int count) {
    int type = call->type;
    int64_t place = row * call->out + column;
    for (int at = 0; at < count; at += LANES) {
        if (count - at >= LANES) {
            vector value = *(const vector *)(sums + at);
            if (call->bias) value += load(call->bias, column + at, type);
            if (call->residual) value = rounded(value, type) + load(call->residual, place + at, type);
            store(call->output, place + at, call->output_type, value);
            continue;
        }
        for (int one = at; one < count; one++) {
            float value = sums[one];
            if (call->bias) value += get(call->bias, column + one, type);
            if (call->residual) value = rounded(broadcast(value), type)[0] + get(call->residual, place + one, type);
            put(call->output, place + one, call->output_type, value);
        }
    }
}

/* HALF gates and what they open. */
static void put_gated(const Product *call, int64_t row, int64_t column, const float *sums, int count) {
    int type = call->type, half = call->out / 2;
    float gates[HALF], values[HALF];
    memcpy(gates, sums, sizeof gates);
    memcpy(values, sums + HALF, sizeof values);
    if (call->bias)
        for (int at = 0; at < count; at++) {
            gates[at] += get(call->bias, column + at, type);
            values[at] += get(call->bias, half + column + at, type);
        }
    for (int at = 0; at < HALF; at += LANES) {
        vector gate = rounded(*(vector *)(gates + at), type), value = rounded(*(vector *)(values + at), type);
        *(vector *)(gates + at) = activate(gate, call->activation) * value;
    }
    int at = 0;
    for (; at + LANES <= count; at += LANES) store(call->output, row * half + column + at, type, *(vector *)(gates + at));
    for (; at < count; at++) put(call->output, row * half + column + at, type, gates[at]);
}

typedef struct {
    const Product *call;
    int64_t panels, chunk; /* rows of a piece */
    int gated, threads;
} Work;

static void product_piece(void *argument, int64_t index, int thread) {
    (void)thread;
    const Work *work = argument;
    const Product *call = work->call;
    int64_t chunks = (call->rows + work->chunk - 1) / work->chunk, panel = index / chunks, first = index % chunks * work->chunk;
    int rows = (int)(call->rows - first < work->chunk ? call->rows - first : work->chunk);
    int depth = words(call->in, call->type);
    float sums[MOST_ROWS * PANEL] __attribute__((aligned(64)));
    const uint32_t *input = (const uint32_t *)call->input + first * depth;
    const uint32_t *packed = call->weight + panel * depth * PANEL;
    /* Ask for what this thread will want: the panel after those that the others have, or more of a panel that several pieces use. */
    int64_t ahead = PANEL * (chunks == 1 ? (int64_t)work->threads * depth : NEAR);
    for (int from = 0; from < depth; from += DEPTH)
        multiply_part(call, input + from, depth, packed + (int64_t)from * PANEL, ahead, depth - from < DEPTH ? depth - from : DEPTH,
                      sums, from > 0, rows);
    int64_t column = panel * (work->gated ? HALF : PANEL);
    int64_t end = work->gated ? call->out / 2 : call->out;
    int count = (int)(end - column < (work->gated ? HALF : PANEL) ? end - column : (work->gated ? HALF : PANEL));
    for (int row = 0; row < rows; row++) {
        if (work->gated) put_gated(call, first + row, column, sums + row * PANEL, count);
        else put_columns(call, first + row, column, sums + row * PANEL, count);
    }
}

void lmc_product(const Product *call, int32_t threads) {
    int gated = call->activation >= 0;
    Work work = {call, gated ? (call->out / 2 + HALF - 1) / HALF : panels_of(call->out), MOST_ROWS, gated, threads};
    int64_t enough = 4 * (int64_t)threads;
    while (work.chunk > BLOCK_ROWS && work.panels * ((call->rows + work.chunk - 1) / work.chunk) < enough) work.chunk /= 2;
    int64_t pieces = work.panels * ((call->rows + work.chunk - 1) / work.chunk);
    int64_t weights = work.panels * words(call->in, call->type) * PANEL;
    pool_run(product_piece, &work, pieces, weights < FEW_WEIGHTS && call->rows < BLOCK_ROWS ? 1 : threads);
}

/* Whether these products are to be taken here rather than torch's: on AVX-512 they were measured to be faster, with and without
 * its products of pairs; with tiles they were not measured yet. */
int32_t lmc_products_pay(void) { return LANES == 16; }
