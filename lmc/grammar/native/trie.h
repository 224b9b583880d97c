/* A vocabulary as a tree of the bytes of its tokens, in depth-first order. */
#ifndef LMC_TRIE_H
#define LMC_TRIE_H

#include <stdint.h>

enum { DEAD = -1, UNKNOWN = -2 };

typedef struct {
    int32_t end;    /* the first node after this one's subtree; children begin right behind the node */
    int32_t token;  /* the lowest token that ends here, or -1 */
    uint32_t label; /* depth << 9 | whether more tokens end here << 8 | the byte that leads here */
} trie_node;

enum { MORE_TOKENS = 1u << 8, DEPTH_SHIFT = 9 };

#endif
