#include "trie.h"

#include <string.h>

/* Builds the tree of `count` tokens that are sorted by their bytes (equal ones by id): token `ids[i]` has the bytes
 * `data[starts[i]] … data[starts[i + 1]]`, at least one. `nodes` has room for all bytes and the root, `same[id]` becomes
 * the next token with the same bytes or -1, `path` has room for the longest token. Returns the number of nodes. */
int64_t lmc_trie_build(const uint8_t *data, const int64_t *starts, const int32_t *ids, int64_t count, trie_node *nodes,
                       int32_t *same, int32_t *path) {
    int64_t made = 1, depth = 0; /* `path[d]` is the last node at depth d, for all d up to `depth` */
    nodes[0] = (trie_node){0, -1, 0};
    path[0] = 0;
    int32_t last = -1;
    for (int64_t at = 0; at < count; at++) {
        const uint8_t *token = data + starts[at];
        int64_t length = starts[at + 1] - starts[at], common = 0;
        while (common < length && common < depth && (nodes[path[common + 1]].label & 0xff) == token[common]) common++;
        if (common == length && common == depth && last >= 0) { /* the same bytes as the token before */
            nodes[path[depth]].label |= MORE_TOKENS;
            same[last] = ids[at];
        } else {
            for (; depth > common; depth--) nodes[path[depth]].end = (int32_t)made;
            for (; depth < length; depth++) {
                nodes[made] = (trie_node){0, -1, (uint32_t)(depth + 1) << DEPTH_SHIFT | token[depth]};
                path[depth + 1] = (int32_t)made++;
            }
            nodes[path[depth]].token = ids[at];
        }
        last = ids[at];
        same[last] = -1;
    }
    for (; depth >= 0; depth--) nodes[path[depth]].end = (int32_t)made;
    return made;
}

/* What is below each of `count` nodes, and one more for the end: `subtrees` [count + 1]. `group_bits` [256] has the bit
 * of the group of each byte. */
void lmc_trie_subtrees(const trie_node *nodes, int64_t count, const int32_t *same, const uint64_t *group_bits,
                       subtree *subtrees) {
    int32_t tokens = 0;
    for (int64_t at = 0; at < count; at++) {
        subtrees[at] = (subtree){at ? group_bits[nodes[at].label & 0xff] : 0, tokens, at > 0};
        for (int32_t token = nodes[at].token; token >= 0; token = same[token]) tokens++;
    }
    subtrees[count] = (subtree){0, tokens, 0};
    for (int64_t at = count - 1; at >= 0; at--)
        for (int64_t child = at + 1; child < nodes[at].end; child = nodes[child].end) {
            subtrees[at].groups |= subtrees[child].groups;
            if (subtrees[at].height <= subtrees[child].height) subtrees[at].height = subtrees[child].height + (at > 0);
        }
}
