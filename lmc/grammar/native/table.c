/* The table of a token index: what every state allows, and where that leads. */
#include "parts.h"

#include <stdlib.h>
#include <string.h>

/* Classes of tokens in columns of 32. A shape says which classes are allowed, and for each of them the place of where it
 * leads among the targets of a row; it consists of the blocks of its columns, and many shapes have a block in common. */
typedef struct {
    interner blocks; /* column, the classes of it as bits, and for each its place among the targets */
    interner shapes; /* blocks, by column */
    interner masks;  /* column and bits of each block of a shape */
    interner rows;   /* shape, then the targets, ascending, less the state's own number */
    int32_t *mask_of_shape, *row_of_state;
} table;

void lmc_table_free(table *t) {
    if (!t) return;
    intern_free(&t->blocks);
    intern_free(&t->shapes);
    intern_free(&t->masks);
    intern_free(&t->rows);
    free(t->mask_of_shape);
    free(t->row_of_state);
    free(t);
}

static int by_number(const void *left, const void *right) {
    int32_t one = *(const int32_t *)left, other = *(const int32_t *)right;
    return (one > other) - (one < other);
}

/* Where a row leads, ascending: `targets`, how many there are, and of each its place: `place_of[target]`, -1 for all
 * others, as it was before for these too. */
static int32_t targets_of(const class_row *row, int32_t *targets, int32_t *place_of) {
    int32_t made = 0;
    for (int32_t at = 0; at < row->used; at++) {
        const int32_t *nexts = row->nexts + row->columns[at] * COLUMN;
        for (uint32_t left = row->words[row->columns[at]]; left; left &= left - 1) {
            int32_t next = nexts[__builtin_ctz(left)];
            if (place_of[next] >= 0) continue;
            place_of[next] = 0;
            targets[made++] = next;
        }
    }
    qsort(targets, (size_t)made, sizeof *targets, by_number);
    for (int32_t at = 0; at < made; at++) place_of[targets[at]] = at;
    return made;
}

/* The shape of a row; negative: no memory. */
static int32_t shape_of(table *t, const class_row *row, const int32_t *place_of) {
    int32_t *blocks = intern_reserve(&t->shapes, row->used), size = row->used;
    if (!blocks) return -2;
    for (int32_t at = 0; at < size; at++) {
        int32_t *block = intern_reserve(&t->blocks, 2 + COLUMN), length = 2, column = row->columns[at];
        if (!block) return -2;
        block[0] = column;
        block[1] = (int32_t)row->words[column];
        for (uint32_t left = row->words[column]; left; left &= left - 1)
            block[length++] = place_of[row->nexts[column * COLUMN + __builtin_ctz(left)]];
        blocks[at] = intern_add(&t->blocks, length);
        if (blocks[at] < 0) return -2;
    }
    int64_t before = t->shapes.count;
    int32_t shape = intern_add(&t->shapes, size);
    if (shape != before) return shape;
    blocks = t->shapes.words + t->shapes.starts[shape];
    int32_t *mask = intern_reserve(&t->masks, 2 * (int64_t)size);
    if (!mask) return -2;
    for (int32_t at = 0; at < size; at++) memcpy(mask + 2 * at, t->blocks.words + t->blocks.starts[blocks[at]], 8);
    t->mask_of_shape[shape] = intern_add(&t->masks, 2 * (int64_t)size);
    return t->mask_of_shape[shape] < 0 ? -2 : shape;
}

static int64_t entries(const table *t) {
    return t->rows.starts[t->rows.count] + t->shapes.starts[t->shapes.count] + t->blocks.starts[t->blocks.count];
}

/* Interns the row of every state. 0: done, 1: beyond `work` or `room`, 2: no memory. */
static int32_t filled(table *t, const functions *f, const parts *p, int32_t classes, int32_t end_class,
                      const uint8_t *accepting, int64_t work, int64_t room) {
    class_row row;
    int32_t *targets = malloc((size_t)f->states * sizeof *targets);
    int32_t *place_of = malloc((size_t)f->states * sizeof *place_of);
    int32_t status = row_begin(&row, classes) && targets && place_of ? 0 : 2;
    if (!status) memset(place_of, 0xff, (size_t)f->states * sizeof *place_of);
    for (int64_t state = 0; state < f->states && !status; state++) {
        work -= row_of_parts(p, state, accepting[state] ? end_class : -1, &row);
        int32_t size = targets_of(&row, targets, place_of);
        int32_t shape = shape_of(t, &row, place_of), *words = intern_reserve(&t->rows, 1 + size);
        if (shape < 0 || !words) {
            status = 2;
            break;
        }
        words[0] = shape;
        for (int32_t at = 0; at < size; at++) {
            words[1 + at] = targets[at] - (int32_t)state;
            place_of[targets[at]] = -1;
        }
        row_clear(&row);
        t->row_of_state[state] = intern_add(&t->rows, 1 + size);
        if (t->row_of_state[state] < 0) status = 2;
        else if (work < 0 || entries(t) > room) status = 1;
    }
    row_free(&row);
    free(targets);
    free(place_of);
    return status;
}

/* The rows of all states, of which equal ones are one. Class c is function `function_of_class[c]`, or none where that is
 * negative; `end_class`, which is one of the latter and before all others, is allowed where a state accepts and leads
 * back to it. `status` becomes 1 where the rows of all states have more than `work` entries or what is kept of them more
 * than `room`, 2 where there is no memory; then nothing is returned. */
table *lmc_table(const functions *f, const int32_t *function_of_class, int32_t classes, int32_t end_class,
                 const uint8_t *accepting, int64_t work, int64_t room, int32_t *status) {
    table *t = calloc(1, sizeof *t);
    parts p = {0};
    *status = 2;
    if (t && intern_begin(&t->blocks) && intern_begin(&t->shapes) && intern_begin(&t->masks) && intern_begin(&t->rows) &&
        (t->mask_of_shape = malloc((size_t)f->states * sizeof *t->mask_of_shape)) &&
        (t->row_of_state = malloc((size_t)f->states * sizeof *t->row_of_state)) &&
        parts_made(&p, f, function_of_class, classes))
        *status = filled(t, f, &p, classes, end_class, accepting, work, room);
    parts_free(&p);
    if (!*status) return t;
    lmc_table_free(t);
    return NULL;
}

/* How many rows, targets of rows, shapes, blocks of shapes, blocks, and places in blocks. */
void lmc_table_sizes(const table *t, int64_t *sizes) {
    sizes[0] = t->rows.count;
    sizes[1] = t->rows.starts[t->rows.count] - t->rows.count;
    sizes[2] = t->shapes.count;
    sizes[3] = t->shapes.starts[t->shapes.count];
    sizes[4] = t->blocks.count;
    sizes[5] = t->blocks.starts[t->blocks.count] - 2 * t->blocks.count;
}

typedef struct {
    int32_t *row_of_state, *shape_of_row;
    int64_t *target_starts; /* [rows + 1] */
    int32_t *deltas, *mask_of_shape;
    int64_t *block_starts; /* [shapes + 1] */
    int32_t *blocks, *column_of_block;
    uint32_t *words;
    int32_t *places;
} table_arrays;

/* Everything in a table of so many states, each kind in an array of its own. */
void lmc_table_copy(const table *t, int64_t states, const table_arrays *to) {
    memcpy(to->row_of_state, t->row_of_state, (size_t)states * sizeof *to->row_of_state);
    memcpy(to->mask_of_shape, t->mask_of_shape, (size_t)t->shapes.count * sizeof *to->mask_of_shape);
    memcpy(to->block_starts, t->shapes.starts, (size_t)(t->shapes.count + 1) * sizeof *to->block_starts);
    memcpy(to->blocks, t->shapes.words, (size_t)t->shapes.starts[t->shapes.count] * sizeof *to->blocks);
    for (int64_t row = 0; row <= t->rows.count; row++) {
        int64_t start = t->rows.starts[row], targets = start - row;
        to->target_starts[row] = targets;
        if (row == t->rows.count) break;
        to->shape_of_row[row] = t->rows.words[start];
        memcpy(to->deltas + targets, t->rows.words + start + 1,
               (size_t)(t->rows.starts[row + 1] - start - 1) * sizeof *to->deltas);
    }
    for (int64_t block = 0; block < t->blocks.count; block++) {
        int64_t start = t->blocks.starts[block];
        to->column_of_block[block] = t->blocks.words[start];
        to->words[block] = (uint32_t)t->blocks.words[start + 1];
        memcpy(to->places + start - 2 * block, t->blocks.words + start + 2,
               (size_t)(t->blocks.starts[block + 1] - start - 2) * sizeof *to->places);
    }
}

/* Of shapes that somebody else may have written, whether the columns of their blocks ascend (1) and every place is below
 * the limit of the shape (2), or both (3). `highest` has room for a number of each block. */
int32_t lmc_shapes_hold(const uint32_t *places, const int64_t *place_starts, const uint32_t *column_of_block,
                        const uint32_t *blocks, const int64_t *block_starts, const int64_t *limits, uint32_t *highest,
                        int64_t block_count, int64_t shapes) {
    int32_t ascend = 1, within = 2;
    for (int64_t block = 0; block < block_count; block++) {
        uint32_t found = 0;
        for (int64_t at = place_starts[block]; at < place_starts[block + 1]; at++)
            if (places[at] > found) found = places[at];
        highest[block] = found;
    }
    for (int64_t shape = 0; shape < shapes; shape++) {
        for (int64_t at = block_starts[shape]; at < block_starts[shape + 1]; at++) {
            if (highest[blocks[at]] >= limits[shape]) within = 0;
            if (at > block_starts[shape] && column_of_block[blocks[at - 1]] >= column_of_block[blocks[at]]) ascend = 0;
        }
    }
    return ascend | within;
}
