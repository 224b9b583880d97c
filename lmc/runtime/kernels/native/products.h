/* Products with weights that were packed once: see products.c. */
#ifndef LMC_PRODUCTS_H
#define LMC_PRODUCTS_H
#include <stdint.h>

typedef struct {
    const void *input;      /* [rows, in] */
    const uint32_t *weight; /* packed */
    const void *bias;       /* [out] or null */
    const void *residual;   /* [rows, out] or null: added to the rounded product */
    void *output;           /* [rows, out]; gated: [rows, out / 2] */
    int64_t rows;
    int32_t in, out, type;  /* bfloat16: `in` is even */
    int32_t output_type;    /* 0 or as `type`, which it is with a gate or a residual */
    int32_t activation;     /* negative: none; else the first half of the columns are gates of the second */
} Product;

void lmc_product(const Product *call, int32_t threads);
#endif
