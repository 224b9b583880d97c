#include "trie.h"

#include <stddef.h>

typedef struct {
    const trie_node *nodes;
    const int32_t *same;  /* [V] */
    const int32_t *rows;  /* [S, 256] */
    const int32_t **path; /* room for the longest token and one more */
    uint32_t *mask;       /* bits of tokens */
    int32_t *tokens;      /* and where each leads; null: not asked for */
    int32_t *nexts;
    int64_t pairs;      /* how many of these are written */
    int32_t *begun[2];  /* nodes whose subtrees are to be walked, and those left out because the row there is not made */
    int32_t *states[2]; /* the state at each of these */
    int64_t count;      /* how many are to be walked; the arrays change places with each call */
    int32_t *unknown;   /* states whose rows are to be made, next ones differ */
} walk_call;

/* Walks the subtrees of the nodes begun, each from its state on. Returns how many states are unknown. */
int64_t lmc_trie_walk(walk_call *call) {
    const trie_node *nodes = call->nodes;
    const int32_t *rows = call->rows, **path = call->path, *begun = call->begun[0], *states = call->states[0];
    int32_t *left_nodes = call->begun[1], *left_states = call->states[1];
    int64_t pairs = call->pairs, left = 0, unknown = 0;
    for (int64_t each = 0; each < call->count; each++) {
        int32_t at = begun[each] + 1, end = nodes[begun[each]].end;
        path[nodes[begun[each]].label >> DEPTH_SHIFT] = rows + (size_t)states[each] * 256;
        while (at < end) {
            trie_node node = nodes[at];
            uint32_t depth = node.label >> DEPTH_SHIFT;
            int32_t next = path[depth - 1][node.label & 0xff];
            if (next < 0) {
                if (next == UNKNOWN) { /* found at the first child, which is right behind its parent */
                    int32_t state = (int32_t)((path[depth - 1] - rows) / 256);
                    left_nodes[left] = at - 1;
                    left_states[left++] = state;
                    if (!unknown || call->unknown[unknown - 1] != state) call->unknown[unknown++] = state;
                    at = nodes[at - 1].end;
                } else {
                    at = node.end;
                }
                continue;
            }
            if (node.token >= 0) {
                int32_t token = node.token;
                do {
                    call->mask[token >> 5] |= 1u << (token & 31);
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
    call->count = left;
    call->begun[1] = call->begun[0];
    call->states[1] = call->states[0];
    call->begun[0] = left_nodes;
    call->states[0] = left_states;
    return unknown;
}
