/* Where to cut a row of logits so that the largest of them make up a wanted sum, without sorting it.
 *
 * Each pass over the row measures what lies above a few pivots and so narrows the interval of the cut; the entries that are left
 * in the interval are gathered once they are few, and only the last of them are sorted. Whatever pivots are tried, the cut is
 * the same up to the rounding of sums: float within a chunk, double across chunks, in one fixed order. */
#ifndef LMC_SELECTION_H
#define LMC_SELECTION_H
#include "elements.h"

#include <float.h>
#include <math.h>

#define VECTORS 32            /* looked through at once */
#define GROUP (VECTORS * LANES) /* arrays are padded to whole groups */
#define CHUNK (64 * LANES)    /* entries summed up in float */
#define PIVOTS 4
#define UNROLLED 4            /* vectors of a pass that do not wait for each other */
#define SOME 1024             /* entries that are gathered anyway */
#define FEW 32                /* entries that are sorted rather than narrowed further */
#define LINEAR_PASSES 6       /* then intervals are halved in the order of floats, which ends for any numbers */
#define COLUMNS 512           /* parts of a row whose largest entries bound the largest of the row */

/* `logits` are padded with -inf, `weights` with 0. Without weights each entry counts 1, without ids they are 0, 1, 2... */
typedef struct {
    float *logits, *weights;
    int32_t *ids;
    int64_t size;
} Entries;

/* Keeps logits above `bound`, and of those equal to it the ones with ids up to `last`. */
typedef struct {
    float bound;
    int32_t last;
    int reached; /* whether what is kept makes up the wanted sum */
} Cut;

static const Cut KEEP_ALL = {-FLT_MAX, INT32_MAX, 1};

static inline int64_t padded(int64_t size, int64_t to) { return (size + to - 1) / to * to; }

static inline vector load_float(const float *from) { return *(const vector *)from; }

static inline vector larger(vector a, vector b) { return choose(a > b, a, b); }

static inline int is_any(ivector mask) {
    uint64_t parts[LANES / 2], any = 0;
    memcpy(parts, &mask, sizeof parts);
    for (int part = 0; part < LANES / 2; part++) any |= parts[part];
    return any != 0;
}

/* An integer that ascends as floats do, the same for both zeros. */
static inline int64_t order_of(float value) {
    int32_t bits;
    memcpy(&bits, &value, 4);
    return bits < 0 ? (int64_t)INT32_MIN - bits : bits;
}

static inline float of_order(int64_t order) {
    int32_t bits = (int32_t)(order < 0 ? INT32_MIN - order : order);
    float value;
    memcpy(&value, &bits, 4);
    return value;
}

static inline float next_above(float value) { return of_order(order_of(value) + 1); }

/* Bit l of word v is lane l of vector v, for what lies in [low, high) among the next GROUP entries; returns which words have any. */
static uint32_t find(const float *logits, float low, float high, uint16_t *words) {
    uvector found = {0}; /* bit v of lane l */
    for (int number = 0; number < VECTORS; number++) {
        vector own = load_float(logits + number * LANES);
        ivector inside = (own >= broadcast(low)) & (own < broadcast(high));
        found |= (uvector)inside & (uint32_t)1 << number;
    }
    uint32_t any = 0;
    if (!is_any((ivector)found)) return 0;
    memset(words, 0, VECTORS * sizeof *words);
    for (int lane = 0; lane < LANES; lane++) {
        any |= found[lane];
        for (uint32_t left = found[lane]; left; left &= left - 1) words[__builtin_ctz(left)] |= (uint16_t)(1 << lane);
    }
    return any;
}

/* Entries of `from` in [low, high), in their order. `to` may be `from`. */
static void gather(const Entries *from, Entries *to, float low, float high) {
    const float *logits = from->logits, *weights = from->weights;
    const int32_t *ids = from->ids;
    int64_t count = 0;
    for (int64_t start = 0; start < from->size; start += GROUP) {
        uint16_t words[VECTORS];
        for (uint32_t any = find(logits + start, low, high, words); any; any &= any - 1) {
            int number = __builtin_ctz(any);
            for (uint32_t left = words[number]; left; left &= left - 1, count++) {
                int64_t place = start + number * LANES + __builtin_ctz(left);
                to->ids[count] = ids ? ids[place] : (int32_t)place;
                to->logits[count] = logits[place];
                if (weights) to->weights[count] = weights[place];
            }
        }
    }
    to->size = count;
    if (!weights) to->weights = 0;
    for (int64_t place = count; place < padded(count, GROUP); place++) {
        to->logits[place] = -INFINITY;
        if (weights) to->weights[place] = 0;
    }
}

/* The largest first, of equal ones the lower id (Shell's method). */
static void sort(Entries *entries) {
    float *logits = entries->logits, *weights = entries->weights;
    int32_t *ids = entries->ids;
    int64_t gap = 1;
    while (gap < entries->size / 3) gap = 3 * gap + 1;
    for (; gap; gap /= 3)
        for (int64_t from = gap; from < entries->size; from++) {
            float logit = logits[from], weight = weights ? weights[from] : 0;
            int32_t id = ids[from];
            int64_t to = from;
            for (; to >= gap && (logits[to - gap] < logit || (logits[to - gap] == logit && ids[to - gap] > id)); to -= gap) {
                logits[to] = logits[to - gap];
                ids[to] = ids[to - gap];
                if (weights) weights[to] = weights[to - gap];
            }
            logits[to] = logit;
            ids[to] = id;
            if (weights) weights[to] = weight;
        }
}

/* An interval of logits between the first and the last of `bounds`, which ascend; `sums` is what is at or above each. */
typedef struct {
    float bounds[PIVOTS + 2];
    double sums[PIVOTS + 2];
} Interval;

/* Measures what is at or above each pivot, which is `base` more than what is in `entries`. */
static void measure(const Entries *entries, double base, Interval *interval) {
    int64_t end = padded(entries->size, LANES);
    for (int pivot = 1; pivot <= PIVOTS; pivot++) interval->sums[pivot] = base;
    for (int64_t start = 0; start < end; start += CHUNK) {
        vector parts[PIVOTS] = {{0}};
        for (int64_t at = start; at < end && at < start + CHUNK; at += LANES) {
            vector logits = load_float(entries->logits + at);
            vector weights = entries->weights ? load_float(entries->weights + at) : broadcast(1);
            for (int pivot = 0; pivot < PIVOTS; pivot++)
                parts[pivot] += choose(logits >= broadcast(interval->bounds[pivot + 1]), weights, broadcast(0));
        }
        for (int pivot = 0; pivot < PIVOTS; pivot++) interval->sums[pivot + 1] += total(parts[pivot]);
    }
}

/* Where between bounds `at` and `at + 1` the sum is expected to be `wanted`: on the cubic through the four bounds around. */
static double expect(const Interval *interval, int at, double wanted) {
    int first = at < 1 ? 0 : at > PIVOTS - 2 ? PIVOTS - 2 : at - 1;
    double terms[4], low = interval->bounds[at], high = interval->bounds[at + 1];
    const float *x = interval->bounds + first;
    for (int term = 0; term < 4; term++) terms[term] = interval->sums[first + term];
    for (int order = 1; order < 4; order++) /* Newton's divided differences */
        for (int term = 3; term >= order; term--)
            terms[term] = (terms[term] - terms[term - 1]) / ((double)x[term] - x[term - order]);
    for (int step = 0; step < 10; step++) {
        double middle = (low + high) / 2;
        double sum = terms[0] + (middle - x[0]) * (terms[1] + (middle - x[1]) * (terms[2] + (middle - x[2]) * terms[3]));
        if (sum >= wanted) low = middle;
        else high = middle;
    }
    return low;
}

/* `expected` is where the cut is expected; the first pass knows nothing. */
static void choose_pivots(Interval *interval, int pass, double expected) {
    static const double steps[PIVOTS] = {-1.0 / 12, -1.0 / 48, 1.0 / 48, 1.0 / 12};
    float low = interval->bounds[0], high = interval->bounds[PIVOTS + 1];
    int64_t first = order_of(low), span = order_of(high) - first;
    for (int pivot = 0; pivot < PIVOTS; pivot++) {
        double part = (pivot + 1.0) / (PIVOTS + 1), width = (double)high - low;
        float bound = (float)(pass ? expected + width * steps[pivot] : low + width * part);
        if (pass >= LINEAR_PASSES) bound = of_order(first + (int64_t)((double)span * part));
        interval->bounds[pivot + 1] = bound > high ? high : bound > low ? bound : low;
    }
}

/* The cut that keeps the fewest of the largest entries that make up `wanted`; it lies in [low, high), where what is at or above
 * `low` measures `all` and nothing reaches `high`, where the weight would be 1; it grows as exp(slope logit). `spare` is room for
 * as many entries. */
static Cut cut_at(Entries row, Entries spare, float low, float high, double wanted, double all, float slope) {
    double base = 0, above = 0, expected = 0; /* above the entries at hand, above the interval; where the cut may be */
    float end = high;
    for (int pass = 0;; pass++) {
        int64_t span = order_of(high) - order_of(low);
        double most = (all - above) / exp(((double)low - end) * slope); /* entries in the interval */
        if (span <= 1 || row.size <= SOME || most * 16 <= (double)row.size) {
            gather(&row, &spare, low, high);
            row = spare;
            base = above;
        }
        if (span <= 1 || row.size <= FEW) break;
        Interval interval;
        interval.bounds[0] = low;
        interval.bounds[PIVOTS + 1] = high;
        interval.sums[0] = all;
        interval.sums[PIVOTS + 1] = above;
        choose_pivots(&interval, pass, expected);
        measure(&row, base, &interval);
        int at = 0;
        while (at < PIVOTS && interval.sums[at + 1] >= wanted) at++;
        low = interval.bounds[at];
        high = interval.bounds[at + 1];
        all = interval.sums[at];
        above = interval.sums[at + 1];
        expected = expect(&interval, at, wanted);
    }
    if (row.size <= FEW) sort(&row); /* more are all equal, by ascending id */
    Cut cut = {low, INT32_MAX, 0};
    for (int64_t place = 0; place < row.size && !cut.reached; place++) {
        above += row.weights ? row.weights[place] : 1;
        cut = (Cut){row.logits[place], row.ids[place], above >= wanted};
    }
    return cut;
}

static float lowest_finite(const float *logits, int64_t size) {
    vector lowest[UNROLLED];
    for (int part = 0; part < UNROLLED; part++) lowest[part] = broadcast(INFINITY);
    for (int64_t at = 0; at < size; at += UNROLLED * LANES)
        for (int part = 0; part < UNROLLED; part++) {
            vector own = load_float(logits + at + part * LANES);
            lowest[part] = choose((own < lowest[part]) & (own > broadcast(-INFINITY)), own, lowest[part]);
        }
    float result = INFINITY;
    for (int part = 0; part < UNROLLED; part++)
        for (int lane = 0; lane < LANES; lane++) result = lowest[part][lane] < result ? lowest[part][lane] : result;
    return result;
}

/* The cut that keeps the `count` largest logits, or all finite ones where there are fewer. */
static Cut cut_at_count(Entries row, Entries spare, float highest, int64_t count) {
    float low = 0, high = next_above(highest);
    int bounded = 0;
    row.weights = 0;
    if (2 * count <= COLUMNS && row.size >= 4 * COLUMNS) { /* as many columns reach what as many logits reach */
        float columns[COLUMNS] __attribute__((aligned(LANES * 4)));
        memcpy(columns, row.logits, sizeof columns);
        for (int64_t at = COLUMNS; at + COLUMNS <= row.size; at += COLUMNS)
            for (int column = 0; column < COLUMNS; column += LANES)
                *(vector *)(columns + column) = larger(load_float(row.logits + at + column), load_float(columns + column));
        Entries parts = {columns, 0, 0, COLUMNS};
        Cut cut = cut_at(parts, spare, lowest_finite(columns, COLUMNS), high, (double)count, COLUMNS, 0);
        bounded = cut.reached;
        low = cut.bound;
    }
    if (!bounded) low = lowest_finite(row.logits, row.size);
    /* What is found is exact; how many there are is only a guess. */
    return cut_at(row, spare, low, high, (double)count, bounded ? (double)count : (double)row.size, 0);
}
#endif
