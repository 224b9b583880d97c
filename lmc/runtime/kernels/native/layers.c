/* What lies between the matrix products of a decoder layer, each in one pass over its data: RMS normalization, rotary
 * embedding with the store of keys and values into their pages, the gate of the feed-forward part. */
#include "layers.h"

#include "activations.h"
#include "pool.h"

#include <math.h>

#define ROWS_PER_PIECE 16

/* One row of `size` elements; input and output may be the same, and the residual, null or as the output, too. */
static void normalize(const void *input, int64_t from, const void *weight, const void *residual, void *output, int64_t to, int size,
                      int type, int plus_one, float epsilon) {
    int whole = size / LANES * LANES;
    vector squares = broadcast(0);
    for (int at = 0; at < whole; at += LANES) {
        vector value = load(input, from + at, type);
        squares += value * value;
    }
    float sum = total(squares);
    for (int at = whole; at < size; at++) sum += get(input, from + at, type) * get(input, from + at, type);
    float factor = 1.0f / sqrtf(sum / (float)size + epsilon);
    for (int at = 0; at < whole; at += LANES) {
        vector value = load(input, from + at, type) * factor, scale = load(weight, at, type);
        if (plus_one) scale += 1.0f;
        else value = rounded(value, type); /* the usual form rounds before it applies the weight */
        value *= scale;
        if (residual) value = rounded(value, type) + load(residual, to + at, type);
        store(output, to + at, type, value);
    }
    for (int at = whole; at < size; at++) {
        float value = get(input, from + at, type) * factor, scale = get(weight, at, type);
        if (plus_one) scale += 1.0f;
        else if (type) value = from_half(to_half(value));
        value *= scale;
        if (residual) value = (type ? from_half(to_half(value)) : value) + get(residual, to + at, type);
        put(output, to + at, type, value);
    }
}

static void norm_piece(void *argument, int64_t piece, int thread) {
    (void)thread;
    const Norm *call = argument;
    int64_t last = (piece + 1) * ROWS_PER_PIECE;
    for (int64_t row = piece * ROWS_PER_PIECE; row < last && row < call->rows; row++)
        normalize(call->input, row * call->size, call->weight, call->residual, call->output, row * call->size, call->size,
                  call->type, call->plus_one, call->epsilon);
}

/* Small steps are not worth waking the helpers. */
static int threads_for(int64_t elements, int threads) { return elements < 65536 ? 1 : threads; }

static int64_t pieces(int64_t rows) { return (rows + ROWS_PER_PIECE - 1) / ROWS_PER_PIECE; }

void lmc_rms_norm(const Norm *call, int32_t threads) {
    pool_run(norm_piece, (void *)call, pieces(call->rows), threads_for(call->rows * call->size, threads));
}

/* Rotates the halves of the first `rotated` elements, as transformers lays them out, and copies the rest. */
static void rotate_head(const Rotate *call, int64_t row, const void *input, int64_t from, void *output, int64_t to) {
    int half = call->rotated / 2, type = call->type;
    int64_t angle = row * call->rotated;
    int at = 0;
    for (; at + LANES <= half; at += LANES) {
        vector low = load(input, from + at, type), high = load(input, from + half + at, type);
        vector first = low * load(call->cosines, angle + at, type) - high * load(call->sines, angle + at, type);
        vector second = high * load(call->cosines, angle + half + at, type) + low * load(call->sines, angle + half + at, type);
        store(output, to + at, type, first);
        store(output, to + half + at, type, second);
    }
    for (; at < half; at++) {
        float low = get(input, from + at, type), high = get(input, from + half + at, type);
        float first = low * get(call->cosines, angle + at, type) - high * get(call->sines, angle + at, type);
        float second = high * get(call->cosines, angle + half + at, type) + low * get(call->sines, angle + half + at, type);
        put(output, to + at, type, first);
        put(output, to + half + at, type, second);
    }
    int width = type ? 2 : 4;
    memcpy((char *)output + (to + call->rotated) * width, (const char *)input + (from + call->rotated) * width,
           (size_t)(call->size - call->rotated) * width);
}

static void rotate_piece(void *argument, int64_t piece, int thread) {
    (void)thread;
    const Rotate *call = argument;
    int size = call->size, width = call->type ? 2 : 4;
    int64_t last = (piece + 1) * ROWS_PER_PIECE;
    float normed[size];
    for (int64_t row = piece * ROWS_PER_PIECE; row < last && row < call->rows; row++) {
        int64_t base = row * (call->heads + 2 * call->key_heads) * size;
        int64_t slot = call->slots[row] * call->key_heads * size;
        for (int head = 0; head < call->heads + call->key_heads; head++) {
            int is_key = head >= call->heads;
            const void *norm = is_key ? call->key_norm : call->query_norm;
            const void *input = call->projected;
            int64_t from = base + (int64_t)head * size;
            if (norm) {
                normalize(input, from, norm, 0, normed, 0, size, call->type, call->plus_one, call->epsilon);
                input = normed;
                from = 0;
            }
            if (is_key) rotate_head(call, row, input, from, call->keys, slot + (int64_t)(head - call->heads) * size);
            else rotate_head(call, row, input, from, call->query, (row * call->heads + head) * size);
        }
        int64_t from = base + (int64_t)(call->heads + call->key_heads) * size;
        memcpy((char *)call->values + slot * width, (const char *)call->projected + from * width,
               (size_t)call->key_heads * size * width);
    }
}

void lmc_rotate_and_store(const Rotate *call, int32_t threads) {
    int64_t elements = call->rows * (call->heads + 2 * call->key_heads) * call->size;
    pool_run(rotate_piece, (void *)call, pieces(call->rows), threads_for(elements, threads));
}

static void gate_piece(void *argument, int64_t piece, int thread) {
    (void)thread;
    const Gate *call = argument;
    int size = call->size, type = call->type;
    int64_t last = (piece + 1) * ROWS_PER_PIECE;
    for (int64_t row = piece * ROWS_PER_PIECE; row < last && row < call->rows; row++) {
        int64_t gate = row * 2 * size, up = gate + size, to = row * size;
        int at = 0;
        for (; at + LANES <= size; at += LANES) {
            vector activated = activate(load(call->input, gate + at, type), call->activation);
            store(call->output, to + at, type, activated * load(call->input, up + at, type));
        }
        for (; at < size; at++) {
            float activated = activate(broadcast(get(call->input, gate + at, type)), call->activation)[0];
            put(call->output, to + at, type, activated * get(call->input, up + at, type));
        }
    }
}

void lmc_gate(const Gate *call, int32_t threads) {
    pool_run(gate_piece, (void *)call, pieces(call->rows), threads_for(2 * call->rows * call->size, threads));
}
