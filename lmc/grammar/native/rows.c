/* The rows of a token index: what each state allows, as classes of tokens, and where that leads. */
#include "functions.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    interner masks; /* classes, ascending */
    interner rows;  /* the number of a mask, then where each of its classes leads, less the state's own number */
    int32_t *row_of_state;
} table;

/* What the numbers of all fronts allow: classes, ascending, and where they lead. The numbers of a front begin at its
 * offset; those of front 0 are the states. */
typedef struct {
    int64_t *offsets; /* [fronts] */
    int64_t *starts;  /* [all numbers + 1] */
    int32_t *classes, *nexts;
    int64_t *segment_starts; /* [states + 1]: the numbers of a state beside its own */
    int64_t *segments;
} parts;

static void parts_free(parts *p) {
    free(p->offsets);
    free(p->starts);
    free(p->classes);
    free(p->nexts);
    free(p->segment_starts);
    free(p->segments);
}

/* Positions after counting: `starts` [count + 1] holds counts one place on and becomes where each begins. */
static int64_t summed(int64_t *starts, int64_t count) {
    for (int64_t at = 0; at < count; at++) starts[at + 1] += starts[at];
    return starts[count];
}

/* And back after each start was moved on while its places were filled. */
static void restored(int64_t *starts, int64_t count) {
    memmove(starts + 1, starts, (size_t)count * sizeof *starts);
    starts[0] = 0;
}

static int parts_of_numbers(parts *p, const functions *f, const int32_t *function_of_class, int32_t classes) {
    int64_t total = 0;
    p->offsets = malloc((size_t)f->fronts.count * sizeof *p->offsets);
    if (!p->offsets) return 0;
    for (int64_t each = 0; each < f->fronts.count; each++) {
        p->offsets[each] = total;
        total += f->fronts.words[f->fronts.starts[each]] - 1;
    }
    if (!(p->starts = calloc((size_t)total + 1, sizeof *p->starts))) return 0;
    for (int pass = 0; pass < 2; pass++) {
        for (int32_t class = 0; class < classes; class++) {
            int32_t function = function_of_class[class];
            if (function < 0) continue;
            const int32_t *words = f->all.words + f->all.starts[function];
            int64_t pairs = (f->all.starts[function + 1] - f->all.starts[function] - 1) / 2;
            int64_t *starts = p->starts + p->offsets[words[0]];
            for (int64_t at = 0; at < pairs; at++) {
                if (!pass) {
                    starts[words[1 + at * 2] + 1]++;
                    continue;
                }
                int64_t place = starts[words[1 + at * 2]]++;
                p->classes[place] = class;
                p->nexts[place] = words[2 + at * 2];
            }
        }
        if (pass) break;
        int64_t entries = summed(p->starts, total);
        p->classes = malloc((size_t)(entries + 1) * sizeof *p->classes);
        p->nexts = malloc((size_t)(entries + 1) * sizeof *p->nexts);
        if (!p->classes || !p->nexts) return 0;
    }
    restored(p->starts, total);
    return 1;
}

static int parts_of_states(parts *p, const functions *f) {
    if (!(p->segment_starts = calloc((size_t)f->states + 1, sizeof *p->segment_starts))) return 0;
    for (int pass = 0; pass < 2; pass++) {
        for (int64_t each = 1; each < f->fronts.count; each++) {
            const int32_t *front = f->fronts.words + f->fronts.starts[each] + 1;
            int64_t states = (f->fronts.starts[each + 1] - f->fronts.starts[each] - 1) / 2;
            for (int64_t at = 0; at < states; at++) {
                int64_t number = p->offsets[each] + front[at * 2 + 1];
                if (p->starts[number] == p->starts[number + 1]) continue;
                if (!pass) p->segment_starts[front[at * 2] + 1]++;
                else p->segments[p->segment_starts[front[at * 2]]++] = number;
            }
        }
        if (pass) break;
        int64_t count = summed(p->segment_starts, f->states);
        if (!(p->segments = malloc((size_t)(count + 1) * sizeof *p->segments))) return 0;
    }
    restored(p->segment_starts, f->states);
    return 1;
}

static int by_class(const void *left, const void *right) {
    int64_t one = *(const int64_t *)left, other = *(const int64_t *)right;
    return (one > other) - (one < other);
}

/* Adds what a number allows to `row`: class << 32 | where it leads. Returns how many there are then. */
static int64_t appended(const parts *p, int64_t number, int64_t *row, int64_t count) {
    for (int64_t at = p->starts[number]; at < p->starts[number + 1]; at++)
        row[count++] = (int64_t)p->classes[at] << 32 | p->nexts[at];
    return count;
}

/* The row of a state, made of its parts. */
static int64_t assembled(const parts *p, int64_t state, int32_t end_class, int64_t *row) {
    int64_t count = 0;
    if (end_class >= 0) row[count++] = (int64_t)end_class << 32 | state;
    count = appended(p, state, row, count);
    int64_t first = p->segment_starts[state], last = p->segment_starts[state + 1];
    for (int64_t at = first; at < last; at++) count = appended(p, p->segments[at], row, count);
    for (int64_t at = 1; at < count; at++) {
        if (row[at - 1] < row[at]) continue;
        qsort(row, (size_t)count, sizeof *row, by_class);
        break;
    }
    return count;
}

static int64_t longest_row(const parts *p, int64_t states) {
    int64_t longest = 0;
    for (int64_t state = 0; state < states; state++) {
        int64_t count = 1 + p->starts[state + 1] - p->starts[state];
        for (int64_t at = p->segment_starts[state]; at < p->segment_starts[state + 1]; at++)
            count += p->starts[p->segments[at] + 1] - p->starts[p->segments[at]];
        if (count > longest) longest = count;
    }
    return longest;
}

void lmc_table_free(table *t) {
    if (!t) return;
    intern_free(&t->masks);
    intern_free(&t->rows);
    free(t->row_of_state);
    free(t);
}

/* Interns mask and row of every state. 0: done, 1: beyond `work` or `room`, 2: no memory. */
static int32_t filled(table *t, const functions *f, const parts *p, int32_t end_class, const uint8_t *accepting,
                      int64_t work, int64_t room) {
    int64_t *row = malloc((size_t)longest_row(p, f->states) * sizeof *row);
    if (!row) return 2;
    int32_t status = 0;
    for (int64_t state = 0; state < f->states && !status; state++) {
        int64_t count = assembled(p, state, accepting[state] ? end_class : -1, row);
        int32_t *mask = intern_reserve(&t->masks, count), *words = intern_reserve(&t->rows, 1 + count);
        if (!mask || !words) {
            status = 2;
            break;
        }
        for (int64_t at = 0; at < count; at++) {
            mask[at] = (int32_t)(row[at] >> 32);
            words[1 + at] = (int32_t)(row[at] & 0xffffffff) - (int32_t)state;
        }
        words[0] = intern_add(&t->masks, count);
        t->row_of_state[state] = words[0] < 0 ? words[0] : intern_add(&t->rows, 1 + count);
        if (t->row_of_state[state] < 0) status = 2;
        work -= count;
        if (work < 0 || t->rows.starts[t->rows.count] > room) status = 1;
    }
    free(row);
    return status;
}

/* The rows of all states, of which equal ones are one. Class c is function `function_of_class[c]`, or none where that is
 * negative; `end_class`, which is one of the latter and before all others, is allowed where a state accepts and leads
 * back to it. `status` becomes 1 where the rows of all states have more than `work` entries or those that differ more than
 * `room`, 2 where there is no memory; then nothing is returned. */
table *lmc_table(const functions *f, const int32_t *function_of_class, int32_t classes, int32_t end_class,
                 const uint8_t *accepting, int64_t work, int64_t room, int32_t *status) {
    table *t = calloc(1, sizeof *t);
    parts p = {0};
    *status = 2;
    if (t && intern_begin(&t->masks) && intern_begin(&t->rows) &&
        (t->row_of_state = malloc((size_t)f->states * sizeof *t->row_of_state)) &&
        parts_of_numbers(&p, f, function_of_class, classes) && parts_of_states(&p, f))
        *status = filled(t, f, &p, end_class, accepting, work, room);
    parts_free(&p);
    if (!*status) return t;
    lmc_table_free(t);
    return NULL;
}

/* How many masks, classes in masks, rows, entries of rows (with the mask of each). */
void lmc_table_sizes(const table *t, int64_t *sizes) {
    sizes[0] = t->masks.count;
    sizes[1] = t->masks.starts[t->masks.count];
    sizes[2] = t->rows.count;
    sizes[3] = t->rows.starts[t->rows.count];
}

void lmc_table_copy(const table *t, int64_t states, int64_t *mask_starts, int32_t *classes, int64_t *row_starts,
                    int32_t *rows, int32_t *row_of_state) {
    memcpy(mask_starts, t->masks.starts, (size_t)(t->masks.count + 1) * sizeof *mask_starts);
    memcpy(classes, t->masks.words, (size_t)mask_starts[t->masks.count] * sizeof *classes);
    memcpy(row_starts, t->rows.starts, (size_t)(t->rows.count + 1) * sizeof *row_starts);
    memcpy(rows, t->rows.words, (size_t)row_starts[t->rows.count] * sizeof *rows);
    memcpy(row_of_state, t->row_of_state, (size_t)states * sizeof *row_of_state);
}
