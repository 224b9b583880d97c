#include "trie.h"

#include <stddef.h>

typedef struct {
    const trie_node *nodes;
    const int32_t *same;  /* [V] */
    const int32_t *rows;  /* [S, 256] */
    const int32_t **path; /* room for the longest token and one more */
    uint32_t *mask;       /* bits of tokens; null: not asked for */
    int32_t *tokens;      /* and where each leads; null: not asked for */
    int32_t *nexts;
    int64_t pairs;        /* how many of these are written */
    int32_t *pending;     /* nodes whose subtrees were left out, because the row of the state there is not made yet */
    int32_t *states;      /* and these states */
} walk_call;

/* Walks the subtrees of `count` nodes, each from its state on. Returns how many were left pending. */
int64_t lmc_trie_walk(walk_call *call, const int32_t *starts, const int32_t *states, int64_t count) {
    const trie_node *nodes = call->nodes;
    const int32_t *rows = call->rows, **path = call->path;
    int64_t pairs = call->pairs, left = 0;
    for (int64_t each = 0; each < count; each++) {
        int32_t at = starts[each] + 1, end = nodes[starts[each]].end;
        path[nodes[starts[each]].label >> DEPTH_SHIFT] = rows + (size_t)states[each] * 256;
        while (at < end) {
            trie_node node = nodes[at];
            uint32_t depth = node.label >> DEPTH_SHIFT;
            int32_t next = path[depth - 1][node.label & 0xff];
            if (next < 0) {
                if (next == UNKNOWN) { /* found at the first child, which is right behind its parent */
                    call->pending[left] = at - 1;
                    call->states[left++] = (int32_t)((path[depth - 1] - rows) / 256);
                    at = nodes[at - 1].end;
                } else {
                    at = node.end;
                }
                continue;
            }
            if (node.token >= 0) {
                int32_t token = node.token;
                do {
                    if (call->mask) call->mask[token >> 5] |= 1u << (token & 31);
                    if (call->tokens) {
                        call->tokens[pairs] = token;
                        call->nexts[pairs++] = next;
                    }
                } while (node.label & MORE_TOKENS && (token = call->same[token]) >= 0);
            }
            path[depth] = rows + (size_t)next * 256;
            at++;
        }
    }
    call->pairs = pairs;
    return left;
}
