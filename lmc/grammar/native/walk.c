#include "trie.h"

#include <stddef.h>

/* A place in a walk: the nodes from `at` to `end`, which have one parent, are to be walked from the state at that parent
 * on. Whatever else may come there, any `left` bytes out of `groups` may (0: that is not known). */
typedef struct {
    uint64_t groups;
    int32_t at, end, state, left;
} place;

/* The same for the parent of the nodes of one depth, with the row of its state. Where that counts a run, `counted` is the
 * state after a byte of it, and the row serves for all states of the run, of which so many are `left`; else it is -1. */
typedef struct {
    const int32_t *row;
    uint64_t groups;
    int32_t end, left, counted;
} frame;

typedef struct {
    uint64_t groups;
    int32_t length, next;
} run;

typedef struct {
    const trie_node *nodes;
    const subtree *subtrees;    /* [nodes + 1] */
    const int32_t *sorted;      /* tokens in the order of their bytes */
    const int32_t *same;        /* [V] */
    const uint64_t *group_bits; /* [256] */
    const int32_t *rows;        /* [S, 256] */
    const run *runs;            /* [S], as in runs.py; null: every node is walked with a state of its own */
    frame *path;                /* room for the longest token and one more */
    uint32_t *mask;             /* bits of tokens */
    int32_t *tokens;            /* and where each leads; null: not asked for */
    int32_t *nexts;
    int32_t *unknown; /* states whose rows are to be made, next ones differ */
    place *places[2]; /* what is to be walked, and what was left out because a row is not made */
    int64_t count;    /* how many are to be walked; the arrays change places with each call */
    int64_t pairs;    /* how many tokens are written */
} walk_call;

/* The frame of a state, with the longer one of two runs: its own and the one given. */
static inline frame entered(const walk_call *call, int32_t state, int32_t end, uint64_t groups, int32_t left) {
    frame made = {call->rows + (size_t)state * 256, groups, end, left, -1};
    if (call->runs && call->runs[state].length >= left) {
        made.groups = call->runs[state].groups;
        made.left = call->runs[state].length;
        made.counted = call->runs[state].next;
    }
    return made;
}

static inline void allow(const walk_call *call, int32_t token) {
    call->mask[token >> 5] |= 1u << (token & 31);
}

/* Walks everything from a state on, or what was left out before where that is negative. Returns how many states are
 * unknown. */
int64_t lmc_trie_walk(walk_call *call, int32_t start) {
    const trie_node *nodes = call->nodes;
    if (start >= 0) {
        call->places[0][0] = (place){0, 1, nodes[0].end, start, 0};
        call->count = 1;
        call->pairs = 0;
    }
    const subtree *subtrees = call->subtrees;
    frame *path = call->path;
    place *begun = call->places[0], *later = call->places[1];
    int64_t left = 0, unknown = 0;
    for (int64_t each = 0; each < call->count; each++) {
        int32_t at = begun[each].at, last = begun[each].end;
        if (at == last) continue;
        path[(nodes[at].label >> DEPTH_SHIFT) - 1] =
            entered(call, begun[each].state, last, begun[each].groups, begun[each].left);
        while (at < last) {
            trie_node node = nodes[at];
            uint32_t depth = node.label >> DEPTH_SHIFT, byte = node.label & 0xff;
            const frame *above = path + depth - 1;
            if (above->left && !(subtrees[at].groups & ~above->groups) && subtrees[at].height <= above->left) {
                int32_t end = subtrees[node.end].first;
                for (int32_t token = subtrees[at].first; token < end; token++) allow(call, call->sorted[token]);
                at = node.end;
                continue;
            }
            int32_t next = above->row[byte];
            if (next == UNKNOWN) {
                int32_t state = (int32_t)((above->row - call->rows) / 256);
                later[left++] = (place){above->groups, at, above->end, state, above->left};
                if (!unknown || call->unknown[unknown - 1] != state) call->unknown[unknown++] = state;
                at = above->end;
                continue;
            }
            if (next < 0 || (next == above->counted && !above->left)) {
                at = node.end;
                continue;
            }
            if (node.token >= 0) {
                int32_t token = node.token;
                do {
                    allow(call, token);
                    if (call->tokens) {
                        call->tokens[call->pairs] = token;
                        call->nexts[call->pairs++] = next;
                    }
                } while (node.label & MORE_TOKENS && (token = call->same[token]) >= 0);
            }
            if (next == above->counted) {
                path[depth] = *above;
                path[depth].end = node.end;
                path[depth].left--;
            } else {
                int goes_on = above->left > 1 && call->group_bits[byte] & above->groups;
                path[depth] = entered(call, next, node.end, above->groups, goes_on ? above->left - 1 : 0);
            }
            at++;
        }
    }
    call->count = left;
    call->places[1] = begun;
    call->places[0] = later;
    return unknown;
}
