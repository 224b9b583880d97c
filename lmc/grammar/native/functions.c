#include "functions.h"
#include "trie.h"

#include <stdlib.h>
#include <string.h>

/* Fewer pairs than this are not worth a front. */
enum { FRONT_PAIRS = 64, NO_MEMORY = -2 };

static uint64_t mixed(uint64_t value) {
    value = (value ^ value >> 31) * 0x9e3779b97f4a7c15u;
    return value ^ value >> 29;
}

/* How many states the `count` pairs at `pairs` lead to, at most `limit` + 1; `numbers` is as it was, all -1. */
static int64_t image_size(functions *f, const int32_t *pairs, int64_t count, int64_t limit) {
    int64_t size = 0, at = 0;
    for (; at < count && size <= limit; at++) {
        int32_t *number = f->numbers + pairs[at * 2 + 1];
        if (*number < 0) *number = (int32_t)size++;
    }
    while (at-- > 0) f->numbers[pairs[at * 2 + 1]] = -1;
    return size;
}

/* The function at the end of `all`, of `count` pairs, with a front of its own. */
static int32_t with_front(functions *f, int64_t count, int64_t size) {
    int32_t *made = f->all.words + f->all.starts[f->all.count];
    int32_t old = made[0], next_number = 0;
    int64_t states = f->states;
    if (old) {
        int64_t start = f->fronts.starts[old];
        states = (f->fronts.starts[old + 1] - start - 1) / 2;
    }
    int32_t *front = intern_reserve(&f->fronts, 1 + 2 * states);
    int32_t *image = malloc((size_t)size * sizeof *image), *leads = malloc((size_t)f->states * sizeof *leads);
    if (!front || !image || !leads) {
        free(image);
        free(leads);
        return NO_MEMORY;
    }
    memset(leads, 0xff, (size_t)f->states * sizeof *leads); /* from the old numbers to states */
    for (int64_t at = 0; at < count; at++) leads[made[1 + at * 2]] = made[2 + at * 2];
    const int32_t *before = old ? f->fronts.words + f->fronts.starts[old] + 1 : NULL;
    int64_t kept = 0;
    for (int64_t at = 0; at < states; at++) {
        int32_t state = before ? before[at * 2] : (int32_t)at, next = leads[before ? before[at * 2 + 1] : at];
        if (next < 0) continue;
        if (f->numbers[next] < 0) {
            f->numbers[next] = next_number;
            image[next_number++] = next;
        }
        front[1 + kept * 2] = state;
        front[2 + kept++ * 2] = f->numbers[next];
    }
    f->work += states;
    front[0] = 1 + next_number;
    made[0] = intern_add(&f->fronts, 1 + 2 * kept);
    for (int32_t at = 0; at < next_number; at++) {
        made[1 + at * 2] = at;
        made[2 + at * 2] = image[at];
        f->numbers[image[at]] = -1;
    }
    free(image);
    free(leads);
    return made[0] < 0 ? NO_MEMORY : intern_add(&f->all, 1 + 2 * (int64_t)next_number);
}

/* The function `first` followed by a byte with this column, or DEAD where that is defined nowhere. */
static int32_t composed(functions *f, int32_t first, const int32_t *column) {
    int64_t words = f->all.starts[first + 1] - f->all.starts[first], count = (words - 1) / 2, kept = 0;
    int32_t *made = intern_reserve(&f->all, words);
    if (!made) return NO_MEMORY;
    const int32_t *from = f->all.words + f->all.starts[first];
    made[0] = from[0];
    for (int64_t at = 0; at < count; at++) {
        int32_t next = column[from[2 + at * 2]];
        made[1 + kept * 2] = from[1 + at * 2];
        made[2 + kept * 2] = next;
        kept += next >= 0;
    }
    f->work += count;
    if (!kept) return DEAD;
    if (kept >= FRONT_PAIRS) {
        int64_t size = image_size(f, made + 1, kept, kept / 2);
        if (size <= kept / 2) return with_front(f, kept, size);
    }
    return intern_add(&f->all, 1 + 2 * kept);
}

static int keys_grown(functions *f) {
    int64_t size = f->key_size * 2;
    uint64_t *keys = malloc((size_t)size * sizeof *keys);
    int32_t *followed = malloc((size_t)size * sizeof *followed);
    if (!keys || !followed) {
        free(keys);
        free(followed);
        return 0;
    }
    memset(keys, 0xff, (size_t)size * sizeof *keys);
    for (int64_t old = 0; old < f->key_size; old++) {
        if (f->keys[old] == UINT64_MAX) continue;
        int64_t slot = (int64_t)(mixed(f->keys[old]) & (uint64_t)(size - 1));
        while (keys[slot] != UINT64_MAX) slot = (slot + 1) & (size - 1);
        keys[slot] = f->keys[old];
        followed[slot] = f->followed[old];
    }
    free(f->keys);
    free(f->followed);
    f->keys = keys;
    f->followed = followed;
    f->key_size = size;
    return 1;
}

/* The same, computed once for each function and class. */
static int32_t step(functions *f, int32_t first, int32_t class, const int32_t *column) {
    uint64_t key = (uint64_t)first << 8 | (uint64_t)class;
    int64_t slot = (int64_t)(mixed(key) & (uint64_t)(f->key_size - 1));
    for (; f->keys[slot] != UINT64_MAX; slot = (slot + 1) & (f->key_size - 1))
        if (f->keys[slot] == key) return f->followed[slot];
    int32_t next = composed(f, first, column);
    f->keys[slot] = key;
    f->followed[slot] = next;
    if (++f->key_count * 2 > f->key_size && !keys_grown(f)) return NO_MEMORY;
    return next;
}

void lmc_functions_free(functions *f) {
    if (!f) return;
    intern_free(&f->fronts);
    intern_free(&f->all);
    free(f->keys);
    free(f->followed);
    free(f->numbers);
    free(f);
}

/* Front 0 and function 0, which leave every state as it is. */
static int identity(functions *f, int64_t states) {
    f->states = states;
    f->key_size = 1024;
    f->keys = malloc((size_t)f->key_size * sizeof *f->keys);
    f->followed = malloc((size_t)f->key_size * sizeof *f->followed);
    f->numbers = malloc((size_t)states * sizeof *f->numbers);
    if (!f->keys || !f->followed || !f->numbers || !intern_begin(&f->fronts) || !intern_begin(&f->all)) return 0;
    memset(f->keys, 0xff, (size_t)f->key_size * sizeof *f->keys);
    memset(f->numbers, 0xff, (size_t)states * sizeof *f->numbers);
    int32_t *front = intern_reserve(&f->fronts, 1), *made = intern_reserve(&f->all, 1 + 2 * states);
    if (!front || !made) return 0;
    front[0] = 1 + (int32_t)states;
    made[0] = intern_add(&f->fronts, 1);
    for (int32_t state = 0; state < states; state++) made[1 + state * 2] = made[2 + state * 2] = state;
    return made[0] == 0 && intern_add(&f->all, 1 + 2 * states) == 0;
}

/* The functions of all tokens: `function_of[token]`, DEAD where no state allows it (what it holds for tokens that are
 * not in the trie is left). `classes` [256] are classes of bytes or -1, `columns` [classes, states] what they do; `path`
 * has room for the longest token and one more. `status` becomes 1 where more than `work` pairs had to be looked at, 2
 * where there is no memory; then nothing is returned. */
functions *lmc_functions(const trie_node *nodes, const int32_t *same, const int16_t *classes, const int32_t *columns,
                         int64_t states, int64_t work, int32_t *path, int32_t *function_of, int32_t *status) {
    functions *f = calloc(1, sizeof *f);
    *status = f && identity(f, states) ? 0 : 2;
    path[0] = 0;
    for (int32_t at = 1, end = nodes[0].end; at < end && !*status;) {
        trie_node node = nodes[at];
        uint32_t depth = node.label >> DEPTH_SHIFT;
        int32_t class = classes[node.label & 0xff];
        int32_t next = class < 0 ? DEAD : step(f, path[depth - 1], class, columns + class * states);
        if (next == NO_MEMORY) *status = 2;
        if (f->work > work) *status = 1;
        if (next < 0) {
            at = node.end;
            continue;
        }
        if (node.token >= 0) {
            int32_t token = node.token;
            do function_of[token] = next;
            while (node.label & MORE_TOKENS && (token = same[token]) >= 0);
        }
        path[depth] = next;
        at++;
    }
    if (!*status) return f;
    lmc_functions_free(f);
    return NULL;
}

int64_t lmc_functions_count(const functions *f) { return f->all.count; }

/* `leads` [states] becomes the function, DEAD where it is not defined. */
static void expanded(const functions *f, int32_t function, int32_t *leads, int32_t *by_number) {
    const int32_t *words = f->all.words + f->all.starts[function];
    int64_t pairs = (f->all.starts[function + 1] - f->all.starts[function] - 1) / 2;
    memset(leads, 0xff, (size_t)f->states * sizeof *leads);
    if (!words[0]) {
        for (int64_t at = 0; at < pairs; at++) leads[words[1 + at * 2]] = words[2 + at * 2];
        return;
    }
    memset(by_number, 0xff, (size_t)f->states * sizeof *by_number);
    for (int64_t at = 0; at < pairs; at++) by_number[words[1 + at * 2]] = words[2 + at * 2];
    const int32_t *front = f->fronts.words + f->fronts.starts[words[0]] + 1;
    int64_t states = (f->fronts.starts[words[0] + 1] - f->fronts.starts[words[0]] - 1) / 2;
    for (int64_t at = 0; at < states; at++) leads[front[at * 2]] = by_number[front[at * 2 + 1]];
}

/* A number that equal functions share: the sum over all states of a factor of the state times one of where it leads.
 * `weights` are the sums of the first factors for each number of each front, those of a front from `offsets` on. */
static uint64_t fingerprint(const functions *f, int32_t function, const uint64_t *weights, const int64_t *offsets) {
    const int32_t *words = f->all.words + f->all.starts[function];
    int64_t pairs = (f->all.starts[function + 1] - f->all.starts[function] - 1) / 2;
    const uint64_t *own = weights + offsets[words[0]];
    uint64_t sum = 0;
    for (int64_t at = 0; at < pairs; at++) sum += own[words[1 + at * 2]] * (mixed((uint64_t)words[2 + at * 2] + 7) | 1);
    return sum;
}

/* Of each function marked in `used` the first one equal to it: `equal[function]`. Returns whether there was memory. */
int32_t lmc_functions_equal(const functions *f, const uint8_t *used, int32_t *equal) {
    int64_t fronts = f->fronts.count, total = 0, slots = 64;
    while (slots < f->all.count * 2) slots *= 2;
    int64_t *offsets = malloc((size_t)fronts * sizeof *offsets);
    if (!offsets) return 0;
    for (int64_t each = 0; each < fronts; each++) {
        offsets[each] = total;
        total += f->fronts.words[f->fronts.starts[each]] - 1;
    }
    uint64_t *weights = calloc((size_t)total + 1, sizeof *weights);
    uint64_t *prints = malloc((size_t)f->all.count * sizeof *prints);
    int32_t *found = malloc((size_t)slots * sizeof *found), *scratch = malloc((size_t)f->states * 3 * sizeof *scratch);
    int32_t done = weights && prints && found && scratch;
    if (done) {
        for (int64_t state = 0; state < f->states; state++) weights[state] = mixed((uint64_t)state + 1) | 1;
        for (int64_t each = 1; each < fronts; each++) {
            const int32_t *front = f->fronts.words + f->fronts.starts[each] + 1;
            int64_t states = (f->fronts.starts[each + 1] - f->fronts.starts[each] - 1) / 2;
            for (int64_t at = 0; at < states; at++)
                weights[offsets[each] + front[at * 2 + 1]] += weights[front[at * 2]];
        }
        memset(found, 0xff, (size_t)slots * sizeof *found);
        for (int32_t each = 0; each < f->all.count; each++) {
            equal[each] = each;
            if (!used[each]) continue;
            prints[each] = fingerprint(f, each, weights, offsets);
            int64_t slot = (int64_t)(mixed(prints[each]) & (uint64_t)(slots - 1));
            int32_t other, *mine = scratch + f->states;
            int expanded_mine = 0;
            for (; (other = found[slot]) >= 0; slot = (slot + 1) & (slots - 1)) {
                /* With one front they would be one function. */
                if (prints[other] != prints[each] ||
                    f->all.words[f->all.starts[other]] == f->all.words[f->all.starts[each]])
                    continue;
                if (!expanded_mine++) expanded(f, each, mine, scratch + 2 * f->states);
                expanded(f, other, scratch, scratch + 2 * f->states);
                if (!memcmp(scratch, mine, (size_t)f->states * sizeof *mine)) break;
            }
            if (other >= 0) equal[each] = other;
            else found[slot] = each;
        }
    }
    free(offsets);
    free(weights);
    free(prints);
    free(found);
    free(scratch);
    return done;
}
