#include "parts.h"

#include <stdlib.h>
#include <string.h>

void parts_free(parts *p) {
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

int parts_made(parts *p, const functions *f, const int32_t *function_of_class, int32_t classes) {
    *p = (parts){0};
    return parts_of_numbers(p, f, function_of_class, classes) && parts_of_states(p, f);
}

int row_begin(class_row *row, int32_t classes) {
    int32_t columns = (classes + COLUMN - 1) / COLUMN;
    *row = (class_row){.all = columns};
    row->nexts = malloc((size_t)classes * sizeof *row->nexts);
    row->words = calloc((size_t)columns, sizeof *row->words);
    row->filled = calloc((size_t)columns / 64 + 1, sizeof *row->filled);
    row->columns = malloc((size_t)columns * sizeof *row->columns);
    return row->nexts && row->words && row->filled && row->columns;
}

void row_free(class_row *row) {
    free(row->nexts);
    free(row->words);
    free(row->filled);
    free(row->columns);
}

void row_clear(class_row *row) {
    for (int32_t at = 0; at < row->used; at++) row->words[row->columns[at]] = 0;
    memset(row->filled, 0, ((size_t)row->all / 64 + 1) * sizeof *row->filled);
    row->used = 0;
}

static void put(class_row *row, int32_t class, int32_t next) {
    row->nexts[class] = next;
    row->words[class / COLUMN] |= 1u << class % COLUMN;
    row->filled[class / COLUMN / 64] |= (uint64_t)1 << class / COLUMN % 64;
}

/* Puts in what a number allows. Returns how many classes that are. */
static int64_t put_number(const parts *p, int64_t number, class_row *row) {
    for (int64_t at = p->starts[number]; at < p->starts[number + 1]; at++) put(row, p->classes[at], p->nexts[at]);
    return p->starts[number + 1] - p->starts[number];
}

int64_t row_of_parts(const parts *p, int64_t state, int32_t end_class, class_row *row) {
    if (end_class >= 0) put(row, end_class, (int32_t)state);
    int64_t count = (end_class >= 0) + put_number(p, state, row);
    for (int64_t at = p->segment_starts[state]; at < p->segment_starts[state + 1]; at++)
        count += put_number(p, p->segments[at], row);
    for (int32_t word = 0; word <= row->all / 64; word++)
        for (uint64_t left = row->filled[word]; left; left &= left - 1)
            row->columns[row->used++] = word * 64 + __builtin_ctzll(left);
    return count;
}
