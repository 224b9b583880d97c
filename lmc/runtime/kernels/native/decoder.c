/* A decoder layer in one call: nothing but these kernels runs between its first norm and its last residual. */
#include "layers.h"
#include "products.h"

void lmc_attention(const void *call, int32_t threads);

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
    const void *input; /* [rows, hidden] */
    void *result;      /* [rows, hidden], another place */
    const void *cosines, *sines;
    const int64_t *slots;
    void *keys, *values;   /* of this layer */
    const void *attention; /* as lmc_attention takes it: `query` to `mixed`, over this layer's keys and values */
    void *normed;          /* [rows, hidden] scratch, and so on */
    void *middle;          /* [rows, hidden] */
    void *projected;       /* [rows, (heads + 2 key_heads) size] */
    void *query;           /* [rows, heads size] */
    void *mixed;           /* [rows, heads size] */
    void *gated;           /* [rows, width of the feed-forward part] */
    int64_t rows;
} Step;

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

static void attend(const Layer *layer, const Step *step, int32_t threads) {
    Rotate rotate = layer->rotate;
    rotate.projected = step->projected;
    rotate.cosines = step->cosines;
    rotate.sines = step->sines;
    rotate.slots = step->slots;
    rotate.query = step->query;
    rotate.keys = step->keys;
    rotate.values = step->values;
    rotate.rows = step->rows;
    lmc_rotate_and_store(&rotate, threads);
    lmc_attention(step->attention, threads);
}

typedef struct {
    const Layer *layer;
    const Step *step;
} LayerCall;

void lmc_decoder_layer(const LayerCall *call, int32_t threads) {
    const Layer *layer = call->layer;
    const Step *step = call->step;
    int64_t rows = step->rows;
    normalize_rows(layer->input_norm, step->input, 0, step->normed, rows, threads);
    multiply_rows(layer->projection, step->normed, 0, step->projected, rows, threads);
    attend(layer, step, threads);
    add_product(&layer->output, &layer->attention_norm, step->mixed, step->input, step->middle, rows, threads);
    normalize_rows(layer->feed_norm, step->middle, 0, step->normed, rows, threads);
    multiply_rows(layer->gate_up, step->normed, 0, step->gated, rows, threads);
    add_product(&layer->down, &layer->last_norm, step->gated, step->middle, step->result, rows, threads);
}
