/* One token for each row of logits. A row is worked on by one thread, in passes over its vectors that stay in the processor's
 * cache, and its sums are added in one order, so that a draw depends neither on the other rows nor on the threads. */
#include "pool.h"
#include "selection.h"

#define BLOCK GROUP     /* entries whose weights are summed together */
#define PART 1024       /* logits of which the largest is found together */
#define FEW_SHARE 8     /* where a mask allows at most one token in this many, those alone are looked at */

typedef struct {
    const float *own;           /* [size] the model's logits */
    const int64_t *changed_ids; /* [changes] tokens that are drawn with other logits */
    const float *changed;       /* [changes] these logits */
    float *weights;             /* [size] gets what each token is drawn with, or null */
    const uint32_t *mask;       /* [mask_words] bit i % 32 of word i / 32: token i may be drawn; or null: every one may */
    int64_t mask_words;         /* tokens beyond them may not be drawn */
    int64_t changes;
    double uniform;             /* in [0, 1) */
    double top_p;               /* 1: no limit */
    float temperature;          /* 0: the likeliest token */
    float min_p;
    int32_t top_k;              /* 0: no limit */
    int32_t top;                /* how many of the likeliest to report; -1: no log-probability either */
    int32_t first_top;          /* where they go */
    int32_t token;              /* result; of no meaning where `highest` is not finite */
    float highest;              /* result: the largest logit to draw from; NaN where there is one, changed or not */
    float logprob;              /* result */
} Row;

typedef struct {
    Row *rows;
    int32_t *top_ids;
    float *top_logprobs;
    char *scratch;
    int64_t row_count, size, scratch_bytes;
} Sample;

/* The entries are the whole row, or the tokens that a mask allows: `restricted` says whether, `allowed` which these are. */
typedef struct {
    Entries row, spare;
    int32_t *allowed;
    double *sums;   /* of the weights of each block */
    int64_t end;    /* the size in whole blocks */
    int restricted;
} Work;

/* Bytes that one thread needs for rows of `size` logits. */
int64_t lmc_sample_scratch(int64_t size) {
    int64_t end = padded(size, BLOCK);
    return 6 * 4 * (end + BLOCK) + 8 * (end / BLOCK + 8);
}

static Work work_of(char *scratch, int64_t size) {
    int64_t end = padded(size, BLOCK), step = end + BLOCK; /* a block apart: `gather` writes one further */
    float *floats = (float *)scratch;
    Entries row = {floats, floats + step, 0, size};
    Entries spare = {floats + 2 * step, floats + 3 * step, (int32_t *)(floats + 4 * step), 0};
    return (Work){row, spare, (int32_t *)(floats + 5 * step), (double *)(floats + 6 * step), end, 0};
}

/* Bits of the tokens from 32 `word` on that may be drawn. */
static inline uint32_t allowed_word(const Row *row, int64_t word, int64_t size) {
    int64_t left = size - 32 * word;
    if (word >= row->mask_words || left <= 0) return 0;
    return left >= 32 ? row->mask[word] : row->mask[word] & (((uint32_t)1 << left) - 1);
}

static int64_t count_allowed(const Row *row, int64_t size) {
    int64_t count = 0;
    for (int64_t word = 0; 32 * word < size; word++) count += __builtin_popcount(allowed_word(row, word, size));
    return count;
}

/* Copies a row to where it is padded, if it is not there, and makes -inf what the mask of `masking` (or null) does not allow; the
 * largest logit that is left, NaN where there is one, masked or not. */
static float take(Work *work, const float *logits, const Row *masking) {
    float *own = work->row.logits, result = -INFINITY;
    int64_t size = work->row.size, whole = size / (UNROLLED * LANES) * (UNROLLED * LANES);
    ivector bits;
    for (int lane = 0; lane < LANES; lane++) bits[lane] = 1 << lane;
    for (int64_t place = whole; place < work->end; place++) own[place] = place < size ? logits[place] : -INFINITY;
    vector highest[UNROLLED];
    ivector odd = {0};
    for (int part = 0; part < UNROLLED; part++) highest[part] = broadcast(-INFINITY);
    for (int64_t start = 0; start < work->end; start += UNROLLED * LANES)
        for (int part = 0; part < UNROLLED; part++) {
            int64_t at = start + part * LANES;
            vector value = load_float(start < whole ? logits + at : own + at);
            odd |= value != value;
            if (masking) {
                ivector word = (ivector){0} + (int32_t)(allowed_word(masking, at / 32, size) >> at % 32);
                value = choose((word & bits) == bits, value, broadcast(-INFINITY));
            }
            *(vector *)(own + at) = value;
            highest[part] = larger(value, highest[part]);
        }
    if (is_any(odd)) return NAN;
    for (int part = 0; part < UNROLLED; part++)
        for (int lane = 0; lane < LANES; lane++) result = highest[part][lane] > result ? highest[part][lane] : result;
    return result;
}

static int has_nan(const float *logits, int64_t size) {
    int64_t whole = size / (UNROLLED * LANES) * (UNROLLED * LANES);
    ivector odd[UNROLLED] = {{0}};
    for (int64_t start = 0; start < whole; start += UNROLLED * LANES)
        for (int part = 0; part < UNROLLED; part++) {
            vector value = load_float(logits + start + part * LANES);
            odd[part] |= value != value;
        }
    for (int part = 1; part < UNROLLED; part++) odd[0] |= odd[part];
    int found = is_any(odd[0]);
    for (int64_t place = whole; place < size; place++) found |= isnan(logits[place]);
    return found;
}

/* Takes only the `count` tokens that a row's mask allows, with their changed logits; the largest of these. */
static float take_allowed(Work *work, const Row *row, int64_t count) {
    float *logits = work->row.logits, result = -INFINITY;
    int64_t size = work->row.size, at = 0;
    for (int64_t word = 0; at < count; word++)
        for (uint32_t left = allowed_word(row, word, size); left; left &= left - 1, at++) {
            int32_t id = (int32_t)(32 * word + __builtin_ctz(left));
            work->allowed[at] = id;
            logits[at] = row->own[id];
        }
    for (int64_t change = 0; change < row->changes; change++) {
        int64_t low = 0, high = count, id = row->changed_ids[change];
        while (low < high) {
            int64_t middle = (low + high) / 2;
            if (work->allowed[middle] < id) low = middle + 1;
            else high = middle;
        }
        if (low < count && work->allowed[low] == id) logits[low] = row->changed[change];
    }
    for (int64_t place = 0; place < count; place++) result = logits[place] > result ? logits[place] : result;
    work->end = padded(count, BLOCK);
    for (int64_t place = count; place < work->end; place++) logits[place] = -INFINITY;
    work->row.size = count;
    work->restricted = 1;
    return result;
}

static int32_t first_at(const Work *work, float logit) {
    uint16_t words[VECTORS];
    for (int64_t start = 0; start < work->row.size; start += GROUP) {
        uint32_t any = find(work->row.logits + start, logit, next_above(logit), words);
        if (any) return (int32_t)(start + __builtin_ctz(any) * LANES + __builtin_ctz(words[__builtin_ctz(any)]));
    }
    /* Only where denormals count as 0, so that nothing lies between 0 and the next number. */
    int32_t id = 0;
    while (id + 1 < work->row.size && work->row.logits[id] != logit) id++;
    return id;
}

static inline ivector first_ids(void) {
    ivector ids;
    for (int lane = 0; lane < LANES; lane++) ids[lane] = lane;
    return ids;
}

static inline ivector is_kept(vector logits, ivector ids, Cut cut) {
    return (logits > broadcast(cut.bound)) | ((logits == broadcast(cut.bound)) & (ids <= (ivector){0} + cut.last));
}

/* Weights exp((logit - highest) scale), 0 for what the cut leaves out and for what is below `least`; returns their sum. */
static double weigh(Work *work, float highest, float scale, Cut cut, float least) {
    double sum = 0;
    ivector ids = first_ids();
    for (int64_t start = 0; start < work->end; start += BLOCK) {
        vector part = {0};
        for (int64_t at = start; at < start + BLOCK; at += LANES, ids += LANES) {
            vector logits = load_float(work->row.logits + at);
            vector weights = exponential((logits - highest) * scale);
            weights = choose(is_kept(logits, ids, cut) & (weights >= broadcast(least)), weights, broadcast(0));
            *(vector *)(work->row.weights + at) = weights;
            part += weights;
        }
        sum += work->sums[start / BLOCK] = total(part);
    }
    return sum;
}

/* Makes weights 0 that the cut leaves out or that are below `least`. */
static void restrict_weights(Work *work, Cut cut, float least) {
    ivector ids = first_ids();
    for (int64_t start = 0; start < work->end; start += BLOCK) {
        vector part = {0};
        for (int64_t at = start; at < start + BLOCK; at += LANES, ids += LANES) {
            vector weights = load_float(work->row.weights + at);
            ivector kept = is_kept(load_float(work->row.logits + at), ids, cut) & (weights >= broadcast(least));
            weights = choose(kept, weights, broadcast(0));
            *(vector *)(work->row.weights + at) = weights;
            part += weights;
        }
        work->sums[start / BLOCK] = total(part);
    }
}

/* The cut of the nucleus: the fewest of the largest weights that make up `share` of their sum. */
static Cut nucleus(Work *work, float highest, float scale, double share, double sum) {
    /* What weighs less than this is together less than what may be left out; the margins are for rounding. */
    double least = (1 - share) * sum / (double)work->row.size * 0.999;
    double distance = fmax(-log(least) / scale, 0) * 1.0001;
    double low = fmax(highest - distance - fabs(highest) * 1e-6, -FLT_MAX);
    return cut_at(work->row, work->spare, (float)low, next_above(highest), share * sum, sum, scale);
}

/* The first id with a weight up to which the weights are more than `uniform` of all. */
static int32_t draw(const Work *work, double uniform) {
    int64_t blocks = work->end / BLOCK, block = 0, token = 0;
    double sum = 0, before = 0, reached = 0;
    for (int64_t index = 0; index < blocks; index++) sum += work->sums[index];
    double target = uniform * sum;
    for (int64_t index = 0; index < blocks && reached <= target; index++) {
        if (work->sums[index] <= 0) continue;
        block = index;
        before = reached;
        reached += work->sums[index];
    }
    for (int64_t id = block * BLOCK; id < (block + 1) * BLOCK && before <= target; id++) {
        if (work->row.weights[id] <= 0) continue;
        token = id;
        before += work->row.weights[id];
    }
    return (int32_t)token;
}

/* Temperature, top-k, top-p, min-p, each on what the one before left, then the draw. */
static int32_t sample(Work *work, const Row *row) {
    float scale = (float)(1 / (double)row->temperature);
    int64_t size = work->row.size;
    Cut cut = KEEP_ALL;
    if (row->top_k > 0 && row->top_k < size) cut = cut_at_count(work->row, work->spare, row->highest, row->top_k);
    int has_nucleus = row->top_p < 1;
    double sum = weigh(work, row->highest, scale, cut, has_nucleus ? 0 : row->min_p);
    if (has_nucleus) restrict_weights(work, nucleus(work, row->highest, scale, row->top_p, sum), row->min_p);
    if (row->weights && work->restricted)
        for (int64_t place = 0; place < size; place++) row->weights[work->allowed[place]] = work->row.weights[place];
    else if (row->weights) memcpy(row->weights, work->row.weights, (size_t)size * 4);
    return draw(work, row->uniform);
}

/* Reports the likeliest tokens; returns what to take from a logit for its log-probability. */
static double log_normalizer(const Sample *call, const Row *row, Work *work, float highest) {
    double normalizer = highest + log(weigh(work, highest, 1, KEEP_ALL, 0));
    if (row->top == 0 || !isfinite(highest)) return normalizer;
    Entries all = work->row;
    all.weights = 0;
    Entries found = work->spare;
    Cut cut = cut_at_count(all, found, highest, row->top);
    gather(&all, &found, cut.bound, next_above(highest));
    sort(&found);
    int32_t *ids = call->top_ids + row->first_top, impossible = 0;
    for (int32_t place = 0; place < row->top; place++) {
        if (place < found.size) {
            ids[place] = found.ids[place];
        } else {
            while (row->own[impossible] > -INFINITY) impossible++;
            ids[place] = impossible++;
        }
        call->top_logprobs[row->first_top + place] = (float)(row->own[ids[place]] - normalizer);
    }
    return normalizer;
}

/* The row as it is to be drawn from, changed and masked, in `work`. Not called for a row with NaN. */
static float prepare(Work *work, const Row *row, float highest, int64_t allowed) {
    if (row->mask && allowed * FEW_SHARE <= work->row.size) return take_allowed(work, row, allowed);
    for (int64_t place = 0; place < row->changes; place++) work->row.logits[row->changed_ids[place]] = row->changed[place];
    return row->changes || row->mask ? take(work, work->row.logits, row->mask ? row : 0) : highest;
}

/* The likeliest token of a row of which nothing else is asked, in one pass over it; its logit, NaN where there is one. */
static float likeliest(const float *logits, int64_t size, int32_t *token) {
    float best = -INFINITY;
    int64_t part = 0, whole = size / PART * PART;
    ivector odd = {0};
    for (int64_t start = 0; start < whole; start += PART) {
        vector highest = broadcast(-INFINITY);
        for (int64_t at = start; at < start + PART; at += LANES) {
            vector value = load_float(logits + at);
            odd |= value != value;
            highest = larger(value, highest);
        }
        for (int lane = 0; lane < LANES; lane++)
            if (highest[lane] > best) best = highest[lane], part = start;
    }
    if (is_any(odd)) return NAN;
    for (int64_t place = whole; place < size; place++) {
        if (isnan(logits[place])) return NAN;
        if (logits[place] > best) best = logits[place], part = whole;
    }
    while (part + 1 < size && logits[part] != best) part++;
    *token = (int32_t)part;
    return best;
}

static void sample_piece(void *argument, int64_t piece, int thread) {
    const Sample *call = argument;
    Row *row = call->rows + piece;
    Work work = work_of(call->scratch + thread * call->scratch_bytes, call->size);
    if (!row->mask && !row->changes && row->temperature <= 0 && row->top < 0) {
        row->highest = likeliest(row->own, call->size, &row->token);
        return;
    }
    double normalizer = 0;
    int64_t allowed = row->mask ? count_allowed(row, call->size) : 0;
    /* Few tokens are taken from where they are; what else the row needs its copy for are log-probabilities. */
    if (row->mask && row->top < 0 && allowed * FEW_SHARE <= call->size) row->highest = has_nan(row->own, call->size) ? NAN : 0;
    else row->highest = take(&work, row->own, 0);
    if (isnan(row->highest)) return;
    if (row->top >= 0) normalizer = log_normalizer(call, row, &work, row->highest);
    row->highest = prepare(&work, row, row->highest, allowed);
    if (!isfinite(row->highest)) return;
    int32_t place = row->temperature > 0 ? sample(&work, row) : first_at(&work, row->highest);
    row->token = work.restricted ? work.allowed[place] : place;
    if (row->top >= 0) row->logprob = (float)(row->own[row->token] - normalizer);
}

void lmc_sample(const Sample *call, int32_t threads) {
    if (call->row_count * call->size < 65536) threads = 1; /* waking the helpers takes longer */
    pool_run(sample_piece, (void *)call, call->row_count, threads);
}
