/* Decoder layers in one call: nothing but these kernels runs between the first norm and the last residual. */
#include "attention_call.h"
#include "layers.h"
#include "products.h"

typedef struct {
    Norm input_norm;
    Product projection; /* queries, keys and values side by side */
    Rotate rotate;
    Product output;
    Norm attention_norm; /* of what attention gives (Gemma); no weight: none */
    Norm feed_norm;
    Product gate_up;
    Product down;
    Norm last_norm; /* of what the feed-forward part gives (Gemma); no weight: none */
} Layer; /* rows and tensors of a step are not filled in */

typedef struct {
    void *keys, *values; /* [pages, key_heads, size] */
} Cache;

typedef struct {
    const Layer *layers;           /* [count] */
    const Cache *caches;           /* [count] */
    Attention *const *attentions;  /* [count], planned; layers of one window and form may have the same */
    const void *input;             /* [rows, hidden] */
    void *result;                  /* [rows, hidden], another place */
    const void *cosines, *sines;   /* [rows, rotated] */
    const int64_t *slots;          /* [rows] */
    void *spare, *normed, *middle; /* [rows, hidden] scratch */
    void *projected;               /* [rows, (heads + 2 key_heads) size], likewise what follows */
    void *query, *mixed;           /* [rows, heads size] */
    void *gated;                   /* [rows, width of the feed-forward part] */
    int64_t rows;
    int32_t count, rotated;
} Decoder;

static void normalize_rows(Norm norm, const void *input, const void *residual, void *output, int64_t rows, int32_t threads) {
    norm.input = input;
    norm.residual = residual;
    norm.output = output;
    norm.rows = rows;
    lmc_rms_norm(&norm, threads);
}

static void multiply_rows(Product product, const void *input, const void *residual, void *output, int64_t rows, int32_t threads) {
    product.input = input;
    product.residual = residual;
    product.output = output;
    product.rows = rows;
    lmc_product(&product, threads);
}

/* output = residual + norm(product(input)), the norm only where there is one; `output` is not `residual`. */
static void add_product(const Product *product, const Norm *norm, const void *input, const void *residual, void *output,
                        int64_t rows, int32_t threads) {
    if (!norm->weight) {
        multiply_rows(*product, input, residual, output, rows, threads);
        return;
    }
    multiply_rows(*product, input, 0, output, rows, threads);
    normalize_rows(*norm, output, residual, output, rows, threads);
}

static void attend(const Decoder *call, int32_t index, int32_t threads) {
    const Cache *cache = call->caches + index;
    Attention *attention = call->attentions[index];
    Rotate rotate = call->layers[index].rotate;
    rotate.projected = call->projected;
    rotate.cosines = call->cosines;
    rotate.sines = call->sines;
    rotate.rotated = call->rotated;
    rotate.slots = call->slots;
    rotate.query = call->query;
    rotate.keys = cache->keys;
    rotate.values = cache->values;
    rotate.rows = call->rows;
    lmc_rotate_and_store(&rotate, threads);
    attention->query = call->query;
    attention->keys = cache->keys;
    attention->values = cache->values;
    attention->result = call->mixed;
    lmc_attention(attention, threads);
}

static void run_layer(const Decoder *call, int32_t index, const void *input, void *result, int32_t threads) {
    const Layer *layer = call->layers + index;
    int64_t rows = call->rows;
    normalize_rows(layer->input_norm, input, 0, call->normed, rows, threads);
    multiply_rows(layer->projection, call->normed, 0, call->projected, rows, threads);
    attend(call, index, threads);
    add_product(&layer->output, &layer->attention_norm, call->mixed, input, call->middle, rows, threads);
    normalize_rows(layer->feed_norm, call->middle, 0, call->normed, rows, threads);
    multiply_rows(layer->gate_up, call->normed, 0, call->gated, rows, threads);
    add_product(&layer->down, &layer->last_norm, call->gated, call->middle, result, rows, threads);
}

void lmc_decoder_layers(const Decoder *call, int32_t threads) {
    const void *input = call->input;
    for (int32_t index = 0; index < call->count; index++) {
        void *result = (call->count - index) % 2 ? call->result : call->spare; /* the last one's is the call's */
        run_layer(call, index, input, result, threads);
        input = result;
    }
}
