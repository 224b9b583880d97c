/* What lies between the matrix products of a decoder layer: see layers.c. */
#ifndef LMC_LAYERS_H
#define LMC_LAYERS_H
#include <stdint.h>

typedef struct {
    const void *input;    /* [rows, size] */
    const void *weight;   /* [size] */
    const void *residual; /* [rows, size] or null: added to the rounded result */
    void *output;
    int64_t rows;
    int32_t size, type;
    int32_t plus_one;     /* the weight is stored less one, and applied before rounding (Gemma) */
    float epsilon;
} Norm;

typedef struct {
    const void *projected;    /* [rows, (heads + 2 key_heads) size]: queries, keys, values */
    const void *cosines;      /* [rows, rotated] */
    const void *sines;
    const void *query_norm;   /* [size] or null */
    const void *key_norm;
    const int64_t *slots;     /* [rows] pages to write to */
    void *query;              /* [rows, heads, size] */
    void *keys;               /* [pages, key_heads, size] */
    void *values;
    int64_t rows;
    int32_t heads, key_heads, size, rotated, type, plus_one;
    float epsilon;
} Rotate;

typedef struct {
    const void *input;  /* [rows, 2 size]: gate, up */
    void *output;       /* [rows, size] */
    int64_t rows;
    int32_t size, type;
    int32_t activation; /* see activations.h */
} Gate;

void lmc_rms_norm(const Norm *call, int32_t threads);
void lmc_rotate_and_store(const Rotate *call, int32_t threads);
void lmc_gate(const Gate *call, int32_t threads);
#endif
