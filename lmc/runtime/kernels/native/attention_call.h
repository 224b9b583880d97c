/* What an attention call is told: see attention.c. */
#ifndef LMC_ATTENTION_CALL_H
#define LMC_ATTENTION_CALL_H
#include <stdint.h>

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
} Attention;

void lmc_attention(const Attention *call, int32_t threads);
#endif
