/* Causal attention of packed queries over paged keys and values, on any CPU: plain C11, GCC/Clang vector types, POSIX threads.
 *
 * The plan (made once a step, used by every layer) is a list of items. An item is a run of consecutive key positions read
 * by a block of query rows; several rows that share a prefix read it in one item. An item goes through its keys in tiles with
 * running maxima (FlashAttention, Dao et al. 2022) and writes, for every row and head, the maximum, the sum and the
 * unnormalized result over its keys; a second phase merges the items of a row by their log-sum-exp (FlashDecoding, Dao et
 * al. 2023; Cascade inference, Ye et al. 2024). Rows that one item computes alone are finished at once.
 * Sums and the softmax are float; in bfloat16 weights are rounded before they are multiplied with values, where the processor
 * multiplies pairs of bfloat16.
 */
#include "attention.h"
#include "attention_few.h"
#include "attention_many.h"
#include "pool.h"

/* Rows of register blocks may reach this much past the last row. */
#define PADDING BLOCK_ROWS

static inline int round_up(int count) { return (count + LANES - 1) / LANES * LANES; }

/* Lays out what an item needs in a thread's scratch, of whose bytes it returns the number. */
static int64_t lay_out(Rows *rows, char *scratch, int count, int size) {
    int64_t padded = count + PADDING, at = 0;
    *rows = (Rows){.count = count, .query_words = round_up(size), .width = round_up(size)};
    const struct {
        void *part;
        int64_t words;
    } parts[] = {
        {&rows->queries, padded * rows->query_words}, {&rows->results, padded * rows->width}, {&rows->sums, padded * LANES},
        {&rows->maxima, padded}, {&rows->positions, padded}, {&rows->weights, FEW_ROWS * TILE},
        {&rows->scores, FEW_ROWS * TILE}, {&rows->key_tile, (int64_t)rows->query_words * TILE},
        {&rows->value_tile, (int64_t)rows->width * TILE},
    };
    for (size_t part = 0; part < sizeof parts / sizeof *parts; part++) {
        char *place = scratch + at;
        memcpy(parts[part].part, &place, sizeof place);
        at += (parts[part].words * 4 + 63) / 64 * 64;
    }
    return at;
}

static void load_rows(const Attention *call, const Item *item, int key_head, const Rows *rows) {
    int repeats = call->heads / call->key_heads, size = call->size, type = call->type, each = PAIRS(type) ? 2 : 1;
    for (int row = 0; row < rows->count; row++) {
        int32_t packed = call->item_rows[item->first_row + row / repeats];
        int64_t place = ((int64_t)packed * call->heads + key_head * repeats + row % repeats) * size;
        for (int at = 0; at < size; at += LANES * each)
            *(uvector *)(rows->queries + (int64_t)row * rows->query_words + at / each)
                = load_words(call->query, place + at, size - at, type);
        rows->positions[row] = call->positions[packed];
        rows->maxima[row] = -INFINITY;
    }
    memset(rows->results, 0, (size_t)rows->count * rows->width * 4);
    memset(rows->sums, 0, (size_t)rows->count * LANES * 4);
}

/* The result of a head of a packed row: values divided by `sum`. */
static inline void finish(const Attention *call, int64_t row, int head, const float *values, float sum) {
    int64_t place = (row * call->heads + head) * call->size;
    int at = 0;
    for (; at + LANES <= call->size; at += LANES)
        store(call->result, place + at, call->type, *(const vector *)(values + at) / sum);
    for (; at < call->size; at++) put(call->result, place + at, call->type, values[at] / sum);
}

/* One item and key head: `index` is item * key_heads + key head. */
static void attend_item(void *argument, int64_t index, int thread) {
    const Attention *call = argument;
    const Item *item = call->items + index / call->key_heads;
    int key_head = (int)(index % call->key_heads), repeats = call->heads / call->key_heads, size = call->size;
    int64_t place = (int64_t)key_head * size;
    Rows rows;
    lay_out(&rows, call->scratch + thread * call->scratch_bytes, item->rows * repeats, size);
    rows.query_words = round_up(words(size, PAIRS(call->type)));
    load_rows(call, item, key_head, &rows);
    if (rows.count <= FEW(call->type)) attend_few(call, item, &rows, place);
    else attend_many(call, item, &rows, place);
    for (int row = 0; row < rows.count; row++) {
        int entry = item->first_row + row / repeats, head = key_head * repeats + row % repeats;
        int32_t packed = call->item_rows[entry];
        const float *results = rows.results + (int64_t)row * rows.width;
        float sum = total(*(const vector *)(rows.sums + row * LANES));
        if (call->row_starts[packed + 1] - call->row_starts[packed] == 1) {
            finish(call, packed, head, results, sum);
            continue;
        }
        float *partial = call->partials + ((int64_t)entry * call->heads + head) * (size + 2);
        memcpy(partial, results, (size_t)size * 4);
        partial[size] = rows.maxima[row];
        partial[size + 1] = sum;
    }
}

/* Merge the partial results of one packed row. */
static void merge_row(void *argument, int64_t row, int thread) {
    const Attention *call = argument;
    int size = call->size;
    const int32_t *partials = call->row_partials + call->row_starts[row];
    int count = call->row_starts[row + 1] - call->row_starts[row];
    if (count == 1) return;
    float *merged = (float *)(call->scratch + thread * call->scratch_bytes);
    for (int head = 0; head < call->heads; head++) {
        float highest = -INFINITY, sum = 0;
        for (int part = 0; part < count; part++) {
            float own = call->partials[((int64_t)partials[part] * call->heads + head) * (size + 2) + size];
            if (own > highest) highest = own;
        }
        memset(merged, 0, (size_t)size * 4);
        for (int part = 0; part < count; part++) {
            const float *partial = call->partials + ((int64_t)partials[part] * call->heads + head) * (size + 2);
            float own = partial[size], factor = 1.0f;
            if (own == -INFINITY) factor = partial[size + 1]; /* it saw nothing: 0, or NaN */
            else if (own < highest) factor = power(broadcast(own - highest))[0];
            sum += partial[size + 1] * factor;
            for (int at = 0; at < size; at++) merged[at] += partial[at] * factor;
        }
        finish(call, row, head, merged, sum);
    }
}

/* Bytes of scratch one thread needs for items of up to `rows` query rows. */
int64_t lmc_attention_scratch(int32_t rows, int32_t heads, int32_t key_heads, int32_t size) {
    Rows layout;
    return lay_out(&layout, 0, rows * (heads / key_heads), size) + 64;
}

void lmc_attention(const Attention *call, int32_t threads) {
    pool_run(attend_item, (void *)call, call->item_count * call->key_heads, threads);
    if (call->row_starts[call->row_count] > call->row_count) pool_run(merge_row, (void *)call, call->row_count, threads);
}
