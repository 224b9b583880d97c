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

int64_t row_of_parts(const parts *p, int64_t state, int32_t end_class, int64_t *row) {
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

int parts_made(parts *p, const functions *f, const int32_t *function_of_class, int32_t classes) {
    *p = (parts){0};
    return parts_of_numbers(p, f, function_of_class, classes) && parts_of_states(p, f);
}

int64_t longest_row(const parts *p, int64_t states) {
    int64_t longest = 0;
    for (int64_t state = 0; state < states; state++) {
        int64_t count = 1 + p->starts[state + 1] - p->starts[state];
        for (int64_t at = p->segment_starts[state]; at < p->segment_starts[state + 1]; at++)
            count += p->starts[p->segments[at] + 1] - p->starts[p->segments[at]];
        if (count > longest) longest = count;
    }
    return longest;
}
